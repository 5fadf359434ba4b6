package transport_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// slowly gives the client's socket a small buffer, so that the rest of a long reply waits in the
// server.
func slowly(t *testing.T, c *inproc.Client) *inproc.Client {
	t.Helper()
	require.NoError(t, c.Conn.(*net.TCPConn).SetReadBuffer(16<<10))
	return c
}

const megabyte = 1_000_000

// TestRepliesOfLongValuesTakeNoMemory: clients that do not read keep no copies of values, and a
// deleted value counts until the last reply with it is gone.
func TestRepliesOfLongValuesTakeNoMemory(t *testing.T) {
	const elements, readers = 30, 10
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		s := inproc.Serve(t, kind, "--maxmemory", "64mb", "--write-timeout", "3600")
		c := s.Dial()
		empty := c.InfoNumber("used_memory_dataset")
		value := strings.Repeat("v", megabyte)
		for range elements {
			c.Do("RPUSH", "list", value)
		}
		var all []*inproc.Client
		for range readers {
			r := slowly(t, s.Dial())
			r.Send("LRANGE list 0 -1\r\n")
			all = append(all, r)
		}
		inproc.Await(t, "replies have begun", func() bool { return c.InfoNumber("total_net_output_bytes") > readers*10_000 })
		require.Less(t, c.InfoNumber("mem_clients_normal"), int64(5*megabyte))
		require.Equal(t, ":1\r\n", c.Do("DEL", "list"))
		require.Greater(t, c.InfoNumber("used_memory_dataset"), int64(elements*megabyte/3), "what is gone counts while it is referred to")
		for _, r := range all {
			require.NoError(t, r.Close())
		}
		inproc.Await(t, "all is given up", func() bool { return c.InfoNumber("used_memory_dataset") < empty+2*megabyte })
		require.Zero(t, c.InfoNumber("evicted_clients"))
	})
}

// TestReplyKeepsItsBytesWhileValuesChange: a reply contains the value at one instant, whatever
// happens to the value while the reply is sent, and however slowly the client reads.
func TestReplyKeepsItsBytesWhileValuesChange(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		s := inproc.Serve(t, kind)
		c := s.Dial()
		empty := c.InfoNumber("used_memory_dataset")
		var all sync.WaitGroup
		var over atomic.Bool
		for i := range 3 {
			w := s.Dial()
			all.Go(func() { changeLong(w, uint64(i), &over) })
		}
		var readers sync.WaitGroup
		for i := range 4 {
			r := slowly(t, s.Dial())
			readers.Go(func() { readUniform(t, r, uint64(i)) })
		}
		readers.Wait()
		over.Store(true)
		all.Wait()
		require.Equal(t, inproc.OK, c.Do("FLUSHALL"))
		inproc.Await(t, "nothing is referred to", func() bool { return c.InfoNumber("used_memory_dataset") < empty+100_000 })
	})
}

// block is the unit in which changeLong writes: all bytes of a block are equal.
const block = 5000

// changeLong makes one change after another to a few long values.
func changeLong(c *inproc.Client, seed uint64, over *atomic.Bool) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for !over.Load() {
		key := strconv.Itoa(rng.IntN(4))
		v := strings.Repeat(string(rune('a'+rng.IntN(26))), block*(1+rng.IntN(60)))
		switch rng.IntN(16) {
		case 0, 1, 2:
			c.Do("SET", "s"+key, v)
		case 3:
			c.Do("APPEND", "s"+key, v)
		case 4:
			c.Do("SETRANGE", "s"+key, strconv.Itoa(block*rng.IntN(10)), v)
		case 5:
			c.Do("GETSET", "s"+key, v)
		case 6:
			c.Do("GETDEL", "s"+key)
		case 7, 8:
			c.Do("RPUSH", "l"+key, v)
		case 9:
			c.Do("LSET", "l"+key, "0", v)
		case 10:
			c.Do("LPOP", "l"+key)
		case 11, 12:
			c.Do("HSET", "h"+key, strconv.Itoa(rng.IntN(5)), v)
		case 13:
			c.Do("RENAME", "l"+key, "l"+strconv.Itoa(rng.IntN(4)))
		case 14:
			c.Do("DEL", "h"+key, "l"+key)
		case 15:
			if rng.IntN(20) == 0 {
				c.Do("FLUSHALL")
			} else {
				c.Do("LTRIM", "l"+key, "-5", "-1")
			}
		}
	}
}

// readUniform reads these values all the time, in small pieces.
func readUniform(t *testing.T, c *inproc.Client, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	for range 60 {
		key := strconv.Itoa(rng.IntN(4))
		command := []string{
			"GET s" + key, "MGET s0 s1 s2 s3", "GETRANGE s" + key + " 5000 99999", "LRANGE l" + key + " 0 -1",
			"HGETALL h" + key, "HVALS h" + key, "LINDEX l" + key + " 0", "LPOP l" + key + " 2",
		}[rng.IntN(8)]
		if rng.IntN(4) == 0 {
			c.Send("MULTI\r\n" + command + "\r\nMGET s0 s1 s2 s3\r\nEXEC\r\n")
			c.Expect(inproc.OK, inproc.Queued, inproc.Queued)
		} else {
			c.Send(command + "\r\n")
		}
		reply := c.Reply()
		for reply != "" {
			line, rest, _ := strings.Cut(reply, "\r\n")
			reply = rest
			n, _ := strconv.Atoi(line[1:])
			if line[0] != '$' || n < 0 {
				require.NotEqual(t, byte('-'), line[0], line)
				continue
			}
			value := reply[:n]
			reply = reply[n+2:]
			for at := 0; n >= block && at < n; at += block {
				if b := value[at : at+block]; bytes.Count([]byte(b), []byte(b[:1])) != block {
					require.Fail(t, "a reply was changed under way", "%s: at %d of %d", command, at, n)
				}
			}
		}
	}
}

// BenchmarkLongGet reads long values over loopback as fast as one client can.
func BenchmarkLongGet(b *testing.B) {
	for _, kind := range []string{"goroutine", "epoll"} {
		if kind == "epoll" && runtime.GOOS != "linux" {
			continue
		}
		for _, size := range []int{100_000, 900_000} {
			b.Run(fmt.Sprintf("%s/%d", kind, size), func(b *testing.B) {
				c := inproc.Serve(b, kind).Dial()
				require.Equal(b, inproc.OK, c.Do("SET", "long", strings.Repeat("v", size)))
				request, reply := inproc.Encode(nil, "GET", "long"), int64(size+len(fmt.Sprintf("$%d\r\n\r\n", size)))
				require.NoError(b, c.SetDeadline(time.Time{}))
				b.SetBytes(int64(size))
				for b.Loop() {
					_, err := c.Write(request)
					require.NoError(b, err)
					_, err = io.CopyN(io.Discard, c.R, reply)
					require.NoError(b, err)
				}
			})
		}
	}
}
