package server_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// cachingClient keeps what it reads until it is told to forget it, and never reads what
// it keeps: once an invalidation is lost, or comes before the reply that it is for, its
// value stays wrong.
type cachingClient struct {
	*client
	kind  string
	cache map[string]string
	asked [][]string // the keys of the reads that are not answered yet
}

// The keys are strings, and a list that is read in the background.
const (
	stressKeys = 12
	stressList = "list"
)

func stressKey(i int) string { return fmt.Sprintf("key:%d", i) }

// read sends a read of keys that are not kept.
func (c *cachingClient) read(keys ...string) {
	const long = "local n = 0 while n < 30000 do n = n + 1 end "
	switch {
	case keys[0] == stressList:
		c.command("LRANGE", stressList, "0", "-1")
	case c.kind == "transaction":
		c.send("MULTI\r\n")
		for _, key := range keys {
			c.command("GET", key)
		}
		c.send("EXEC\r\n")
	case c.kind == "opt in":
		c.send("CLIENT CACHING YES\r\n")
		c.command(append([]string{"MGET"}, keys...)...)
	case c.kind == "script", c.kind == "long script":
		script := "return redis.call('mget', unpack(KEYS))"
		if c.kind == "long script" && rand.IntN(40) == 0 {
			script = long + script
		}
		c.command(append([]string{"EVAL", script, fmt.Sprint(len(keys))}, keys...)...)
	default:
		c.command(append([]string{"MGET"}, keys...)...)
	}
	c.asked = append(c.asked, keys)
}

// take reads one reply or push and does what it says.
func (c *cachingClient) take() {
	reply := c.reply()
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

// round reads this and that, several reads at once, and takes the answers.
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

// isUnknown reports whether the client neither keeps the key nor has asked for it.
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

// settle takes what the client has been sent by now.
func (c *cachingClient) settle() {
	c.send("PING\r\n")
	for {
		if next, err := c.r.Peek(1); err == nil && next[0] == '+' {
			if c.reply() == "+PONG\r\n" {
				return
			}
			continue
		}
		c.take()
	}
}

// write changes something in one of the ways in which things change.
func write(c *client, n int64) {
	key, other, value := stressKey(rand.IntN(stressKeys)), stressKey(rand.IntN(stressKeys)), fmt.Sprint(n)
	switch rand.IntN(12) {
	case 0:
		c.do("DEL", key)
	case 1:
		c.do("RENAME", key, other)
	case 2:
		c.send("MULTI\r\n")
		c.command("SET", key, value)
		c.command("SET", other, value+"b")
		c.command("SET", key, value+"c")
		c.send("EXEC\r\n")
		for range 5 {
			c.reply()
		}
	case 3:
		c.do("EVAL", "return redis.call('set', KEYS[1], ARGV[1])", "1", key, value)
	case 4:
		c.do("EVAL", "for i = 1, tonumber(ARGV[2]) do redis.call('set', KEYS[1], ARGV[1] .. i) end", "1", key, value, "100")
	case 5:
		if rand.IntN(20) == 0 {
			c.do("FLUSHALL")
		}
	case 6:
		c.do("MSET", key, value, other, value+"b")
	case 7:
		c.do("SET", key, value, "PX", "1") // it expires when the clock goes on
	case 8:
		c.do("LSET", stressList, "0", value)
		c.do("LPUSHX", stressList, value)
	default:
		c.do("SET", key, value)
	}
}

// TestTrackingClientsNeverKeepAStaleValue: whatever writers do at the same time, from
// other loops, in transactions, scripts and in the background, a cache that does what it
// is told holds nothing but the truth once it has been told.
func TestTrackingClientsNeverKeepAStaleValue(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		for _, table := range []string{"1000000", "5"} {
			t.Run("table of "+table, func(t *testing.T) {
				rounds := 15
				if testing.Short() {
					rounds = 3
				}
				playStress(t, start(t, kind, "--tracking-table-max-keys", table), rounds)
			})
		}
	})
}

// playStress has clients cache and writers write, and compares after each round.
func playStress(t *testing.T, f *fixture, rounds int) {
	readers := []*cachingClient{}
	for _, kind := range []string{"plain", "opt in", "bcast", "transaction", "script", "long script", "slow"} {
		options := map[string][]string{"opt in": {"OPTIN"}, "bcast": {"BCAST"}}[kind]
		readers = append(readers, &cachingClient{client: f.tracker(options...), kind: kind, cache: map[string]string{}})
	}
	truth := f.dial()
	truth.do("HELLO", "3")
	writers := []*client{f.dial(), f.dial(), f.dial()}
	var values atomic.Int64
	for range rounds {
		fillList(truth)
		f.clock.Advance(10 * time.Millisecond)
		var over atomic.Bool
		var writing, reading sync.WaitGroup
		for _, w := range writers {
			writing.Go(func() {
				for range 25 {
					write(w, values.Add(1))
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
		f.clock.Advance(10 * time.Millisecond)
		f.Keyspace().Sweep(1 << 20)
		for _, r := range readers {
			r.compare(truth)
		}
	}
}

// fillList makes the list long enough to be read in the background, and short enough to
// be read often.
func fillList(c *client) {
	args := []string{"RPUSH", stressList}
	for i := range 9000 {
		args = append(args, fmt.Sprint(i))
	}
	c.do("DEL", stressList)
	c.do(args...)
}

// compare waits until what the client keeps is true. A value that is never taken back
// makes it fail.
func (c *cachingClient) compare(truth *client) {
	c.t.Helper()
	known := map[string]string{}
	for i := range stressKeys {
		known[stressKey(i)] = ""
		if lines := strings.Split(truth.do("GET", stressKey(i)), "\r\n"); lines[0] != "_" {
			known[stressKey(i)] = lines[1]
		}
	}
	known[stressList] = strings.Split(truth.do("LRANGE", stressList, "0", "0")+"\r\n\r\n", "\r\n")[2]
	wrong := ""
	for end := time.Now().Add(patience / 3); time.Now().Before(end); {
		c.settle()
		wrong = ""
		for key, value := range c.cache {
			if value != known[key] {
				wrong = fmt.Sprintf("%s is %q and kept as %q", key, known[key], value)
			}
		}
		if wrong == "" {
			return
		}
	}
	require.Fail(c.t, "a stale value", "%s: %s", c.kind, wrong)
}
