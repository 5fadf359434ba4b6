package tracking_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// cachingClient caches what it reads until it gets an invalidation, and never reads a key that it
// has cached. So its value stays wrong if an invalidation is lost, or comes before the reply with
// the old value.
type cachingClient struct {
	*inproc.Client
	kind  string
	cache map[string]string
	asked [][]string // the keys of the reads without a reply so far
}

// The keys are strings, and a list that is read in the background.
const (
	stressKeys = 12
	stressList = "list"
)

func stressKey(i int) string { return fmt.Sprintf("key:%d", i) }

// read sends a read of keys that are not cached.
func (c *cachingClient) read(keys ...string) {
	const long = "local n = 0 while n < 30000 do n = n + 1 end "
	switch {
	case keys[0] == stressList:
		c.Command("LRANGE", stressList, "0", "-1")
	case c.kind == "transaction":
		c.Send("MULTI\r\n")
		for _, key := range keys {
			c.Command("GET", key)
		}
		c.Send("EXEC\r\n")
	case c.kind == "opt in":
		c.Send("CLIENT CACHING YES\r\n")
		c.Command(append([]string{"MGET"}, keys...)...)
	case c.kind == "script", c.kind == "long script":
		script := "return redis.call('mget', unpack(KEYS))"
		if c.kind == "long script" && rand.IntN(40) == 0 {
			script = long + script
		}
		c.Command(append([]string{"EVAL", script, fmt.Sprint(len(keys))}, keys...)...)
	default:
		c.Command(append([]string{"MGET"}, keys...)...)
	}
	c.asked = append(c.asked, keys)
}

// take reads one reply or push message and updates the cache.
func (c *cachingClient) take() {
	reply := c.Reply()
	switch {
	case reply == invalidatedAll:
		clear(c.cache)
	case strings.HasPrefix(reply, ">2"):
		lines := strings.Split(reply, "\r\n")
		for i := 5; i < len(lines); i += 2 {
			delete(c.cache, lines[i])
		}
	case reply[0] == '*':
		keys := c.asked[0]
		c.asked = c.asked[1:]
		if keys[0] == stressList {
			c.cache[stressList] = strings.SplitN(reply+"\r\n\r\n", "\r\n", 4)[2]
			return
		}
		rest := reply[strings.Index(reply, "\n")+1:]
		for _, key := range keys {
			lines := strings.SplitN(rest, "\r\n", 3)
			if lines[0] == "_" || lines[0] == "$-1" {
				c.cache[key] = ""
				rest = rest[len(lines[0])+2:]
				continue
			}
			c.cache[key] = lines[1]
			rest = lines[2]
		}
	}
}

// round sends several random reads at once and takes the replies.
func (c *cachingClient) round() {
	for range 1 + rand.IntN(4) {
		var keys []string
		for range 1 + rand.IntN(3) {
			if key := stressKey(rand.IntN(stressKeys)); c.isUnknown(key) {
				keys = append(keys, key)
			}
		}
		if c.kind == "slow" && c.isUnknown(stressList) {
			keys = []string{stressList}
		}
		if len(keys) > 0 {
			c.read(keys...)
		}
	}
	for len(c.asked) > 0 {
		c.take()
	}
}

// isUnknown reports whether the client neither has the key cached nor waits for its value.
func (c *cachingClient) isUnknown(key string) bool {
	for _, keys := range c.asked {
		for _, asked := range keys {
			if asked == key {
				return false
			}
		}
	}
	_, kept := c.cache[key]
	return !kept
}

// settle processes all messages that the client has been sent so far.
func (c *cachingClient) settle() {
	c.Send("PING\r\n")
	for {
		if next, err := c.R.Peek(1); err == nil && next[0] == '+' {
			if c.Reply() == "+PONG\r\n" {
				return
			}
			continue
		}
		c.take()
	}
}

// write changes a key in one of the ways in which keys can change.
func write(c *inproc.Client, n int64) {
	key, other, value := stressKey(rand.IntN(stressKeys)), stressKey(rand.IntN(stressKeys)), fmt.Sprint(n)
	switch rand.IntN(12) {
	case 0:
		c.Do("DEL", key)
	case 1:
		c.Do("RENAME", key, other)
	case 2:
		c.Send("MULTI\r\n")
		c.Command("SET", key, value)
		c.Command("SET", other, value+"b")
		c.Command("SET", key, value+"c")
		c.Send("EXEC\r\n")
		for range 5 {
			c.Reply()
		}
	case 3:
		c.Do("EVAL", "return redis.call('set', KEYS[1], ARGV[1])", "1", key, value)
	case 4:
		c.Do("EVAL", "for i = 1, tonumber(ARGV[2]) do redis.call('set', KEYS[1], ARGV[1] .. i) end", "1", key, value, "100")
	case 5:
		if rand.IntN(20) == 0 {
			c.Do("FLUSHALL")
		}
	case 6:
		c.Do("MSET", key, value, other, value+"b")
	case 7:
		c.Do("SET", key, value, "PX", "1") // it expires when the clock advances
	case 8:
		c.Do("LSET", stressList, "0", value)
		c.Do("LPUSHX", stressList, value)
	default:
		c.Do("SET", key, value)
	}
}

// TestTrackingClientsNeverKeepAStaleValue: a cache that follows the invalidations holds only
// current values once they have arrived, whatever writers do at the same time on other loops, in
// transactions, in scripts and in the background.
func TestTrackingClientsNeverKeepAStaleValue(t *testing.T) {
	for _, table := range []string{"1000000", "5"} {
		t.Run("table of "+table, func(t *testing.T) {
			rounds := 15
			if testing.Short() {
				rounds = 3
			}
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				playStress(t, w, w.Start("--tracking-table-max-keys", table), rounds)
			})
		})
	}
}

// playStress runs caching clients and writers, and compares the caches after each round.
func playStress(t *testing.T, w *inproc.World, f *inproc.Node, rounds int) {
	readers := []*cachingClient{}
	for _, kind := range []string{"plain", "opt in", "bcast", "transaction", "script", "long script", "slow"} {
		options := map[string][]string{"opt in": {"OPTIN"}, "bcast": {"BCAST"}}[kind]
		readers = append(readers, &cachingClient{Client: tracker(t, f, options...), kind: kind, cache: map[string]string{}})
	}
	truth := f.Dial()
	truth.Do("HELLO", "3")
	writers := []*inproc.Client{f.Dial(), f.Dial(), f.Dial()}
	var values atomic.Int64
	for range rounds {
		fillList(truth)
		w.Advance(10 * time.Millisecond)
		var over atomic.Bool
		var writing, reading sync.WaitGroup
		for _, c := range writers {
			writing.Go(func() {
				for range 25 {
					write(c, values.Add(1))
				}
			})
		}
		for _, r := range readers {
			reading.Go(func() {
				for !over.Load() {
					r.round()
				}
				r.round()
			})
		}
		writing.Wait()
		over.Store(true)
		reading.Wait()
		w.Advance(10 * time.Millisecond)
		f.Keyspace().Sweep(1 << 20)
		w.Settle()
		for _, r := range readers {
			r.compare(t, truth)
		}
	}
}

// fillList makes the list long enough to be read in the background, and short enough to
// be read often.
func fillList(c *inproc.Client) {
	args := []string{"RPUSH", stressList}
	for i := range 9000 {
		args = append(args, fmt.Sprint(i))
	}
	c.Do("DEL", stressList)
	c.Do(args...)
}

// compare checks that the cache agrees with the server once all invalidations have arrived.
func (c *cachingClient) compare(t *testing.T, truth *inproc.Client) {
	t.Helper()
	known := map[string]string{}
	for i := range stressKeys {
		known[stressKey(i)] = ""
		if lines := strings.Split(truth.Do("GET", stressKey(i)), "\r\n"); lines[0] != "_" {
			known[stressKey(i)] = lines[1]
		}
	}
	known[stressList] = strings.Split(truth.Do("LRANGE", stressList, "0", "0")+"\r\n\r\n", "\r\n")[2]
	c.settle()
	for key, value := range c.cache {
		require.Equal(t, known[key], value, "%s keeps a stale value of %s", c.kind, key)
	}
}
