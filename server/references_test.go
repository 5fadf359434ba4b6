package server_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// slowly has the client's socket take little, so that the rest of a long reply waits.
func (c *client) slowly() *client {
	require.NoError(c.t, c.Conn.(*net.TCPConn).SetReadBuffer(16<<10))
	return c
}

const megabyte = 1_000_000

// TestRepliesOfLongValuesTakeNoMemory: readers that do not read keep no copies, and a
// value that is gone counts until the last of them is.
func TestRepliesOfLongValuesTakeNoMemory(t *testing.T) {
	const elements, readers = 30, 40
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--maxmemory", "64mb", "--write-timeout", "3600")
		c := f.dial()
		empty := c.infoNumber("used_memory_dataset")
		value := strings.Repeat("v", megabyte)
		for i := range elements {
			require.Equal(t, fmt.Sprintf(":%d\r\n", i+1), c.do("RPUSH", "list", value))
		}
		require.Equal(t, okReply, c.do("SET", "long", value))
		full := c.infoNumber("used_memory_dataset")
		commands := []string{"LRANGE list 0 -1", "GET long\r\nLRANGE list 0 -1", "MULTI\r\nLRANGE list 0 -1\r\nGET long\r\nEXEC", "EVAL \"return redis.call('LRANGE', 'list', 0, -1)\" 0"}
		var all []*client
		for i := range readers {
			r := f.dial().slowly()
			r.send(commands[i%len(commands)] + "\r\n")
			all = append(all, r)
		}
		eventually(t, "replies have begun", func() bool { return c.infoNumber("total_net_output_bytes") > readers*10_000 })
		require.Less(t, c.infoNumber("mem_clients_normal"), int64(5*megabyte))
		require.Equal(t, full, c.infoNumber("used_memory_dataset"))
		require.Equal(t, ":1\r\n", c.do("DEL", "list"))
		require.Greater(t, c.infoNumber("used_memory_dataset"), int64(elements*megabyte/3), "what is gone counts while it is referred to")
		for _, r := range all {
			require.NoError(t, r.Close())
		}
		eventually(t, "all is given up", func() bool { return c.infoNumber("used_memory_dataset") < empty+2*megabyte })
		require.Zero(t, c.infoNumber("evicted_clients"))
	})
}

// TestRefusesToReplaceWhatIsReadUnderFullMemory: a value that replies refer to stays in
// memory when it is replaced, so that this takes memory.
func TestRefusesToReplaceWhatIsReadUnderFullMemory(t *testing.T) {
	f := start(t, transports()[0], "--write-timeout", "3600")
	c, r := f.dial(), f.dial().slowly()
	value := strings.Repeat("v", 8*megabyte/10)
	require.Equal(t, okReply, c.do("SET", "long", value))
	r.send(strings.Repeat("GET long\r\n", 100))
	require.NotEmpty(t, r.reply())
	require.Equal(t, okReply, c.do("CONFIG", "SET", "maxmemory", "1"))
	require.Contains(t, c.do("SET", "long", value), "-OOM")
	require.NoError(t, r.Close())
	eventually(t, "nobody reads it", func() bool { return c.do("SET", "long", value) == okReply })
}

// TestRefusesToReplaceElementsThatAreReadUnderFullMemory: HSET and LSET as SET. What takes
// no memory goes on, as with a limiter that exists.
func TestRefusesToReplaceElementsThatAreReadUnderFullMemory(t *testing.T) {
	f := start(t, transports()[0], "--write-timeout", "3600")
	c := f.dial()
	value := strings.Repeat("v", 8*megabyte/10)
	c.do("HSET", "hash", "field", value, "free", value)
	c.do("RPUSH", "list", value, value)
	for name, words := range map[string][]string{
		"HGET hash field": {"HSET", "hash", "field", value},
		"LINDEX list 0":   {"LSET", "list", "0", value},
	} {
		r := f.dial().slowly()
		r.send(strings.Repeat(name+"\r\n", 100))
		require.NotEmpty(t, r.reply())
		require.Equal(t, okReply, c.do("CONFIG", "SET", "maxmemory", "1"))
		require.Equal(t, oom, c.do(words...), name)
		require.Equal(t, ":0\r\n", c.do("HSET", "hash", "free", value), "nobody reads it")
		require.Equal(t, okReply, c.do("LSET", "list", "1", value), "nobody reads it")
		require.Equal(t, oom, c.do("LSET", "list", "1", value+"longer"))
		require.NoError(t, r.Close())
		eventually(t, "nobody reads it", func() bool { return c.do(words...) != oom })
		require.Equal(t, okReply, c.do("CONFIG", "SET", "maxmemory", "0"))
	}
}

// TestReplyKeepsItsBytesWhileValuesChange: whatever is done to a value while a reply is
// under way, and however slowly that is read, it is what the value was at one instant.
func TestReplyKeepsItsBytesWhileValuesChange(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		c := f.dial()
		empty := c.infoNumber("used_memory_dataset")
		var all sync.WaitGroup
		var over atomic.Bool
		for i := range 3 {
			w := f.dial()
			all.Go(func() { changeLong(w, uint64(i), &over) })
		}
		var readers sync.WaitGroup
		for i := range 4 {
			r := f.dial().slowly()
			readers.Go(func() { readUniform(r, uint64(i)) })
		}
		readers.Wait()
		over.Store(true)
		all.Wait()
		require.Equal(t, okReply, c.do("FLUSHALL"))
		eventually(t, "nothing is referred to", func() bool { return c.infoNumber("used_memory_dataset") < empty+100_000 })
	})
}

// TestLargeCopiedRepliesTakeTheirMemoryInTurn: readers of a large collection of short
// elements wait for each other, and none is closed for what is kept for it.
func TestLargeCopiedRepliesTakeTheirMemoryInTurn(t *testing.T) {
	const fields, size, readers = 20_000, 400, 8
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--maxmemory", "64mb", "--write-timeout", "3600")
		c := f.dial()
		for i := range fields / 1000 {
			words := []string{"HSET", "hash"}
			for j := range 1000 {
				words = append(words, strconv.Itoa(i*1000+j), strings.Repeat("v", size))
			}
			require.Equal(t, ":1000\r\n", c.do(words...))
		}
		want := c.do("HGETALL", "hash")
		require.Equal(t, 2*fields, strings.Count(want, "$"))
		var all sync.WaitGroup
		for range readers {
			r := f.dial().slowly()
			r.command("HGETALL", "hash")
			all.Go(func() { require.Equal(r.t, want, r.reply(), "the reply is whole") })
		}
		all.Wait()
		require.Zero(t, c.infoNumber("evicted_clients"))
		eventually(t, "all has left", func() bool { return c.infoNumber("mem_clients_normal") < megabyte })
	})
}

// block is the unit in which changeLong writes: all bytes of one are equal.
const block = 5000

// changeLong does one thing after another to a few long values.
func changeLong(c *client, seed uint64, over *atomic.Bool) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for !over.Load() {
		key := strconv.Itoa(rng.IntN(4))
		v := strings.Repeat(string(rune('a'+rng.IntN(26))), block*(1+rng.IntN(60)))
		switch rng.IntN(16) {
		case 0, 1, 2:
			c.do("SET", "s"+key, v)
		case 3:
			c.do("APPEND", "s"+key, v)
		case 4:
			c.do("SETRANGE", "s"+key, strconv.Itoa(block*rng.IntN(10)), v)
		case 5:
			c.do("GETSET", "s"+key, v)
		case 6:
			c.do("GETDEL", "s"+key)
		case 7, 8:
			c.do("RPUSH", "l"+key, v)
		case 9:
			c.do("LSET", "l"+key, "0", v)
		case 10:
			c.do("LPOP", "l"+key)
		case 11, 12:
			c.do("HSET", "h"+key, strconv.Itoa(rng.IntN(5)), v)
		case 13:
			c.do("RENAME", "l"+key, "l"+strconv.Itoa(rng.IntN(4)))
		case 14:
			c.do("DEL", "h"+key, "l"+key)
		case 15:
			if rng.IntN(20) == 0 {
				c.do("FLUSHALL")
			} else {
				c.do("LTRIM", "l"+key, "-5", "-1")
			}
		}
	}
}

// readUniform reads them all the time, a little at a time.
func readUniform(c *client, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	for range 60 {
		key := strconv.Itoa(rng.IntN(4))
		command := []string{
			"GET s" + key, "MGET s0 s1 s2 s3", "GETRANGE s" + key + " 5000 99999", "LRANGE l" + key + " 0 -1",
			"HGETALL h" + key, "HVALS h" + key, "LINDEX l" + key + " 0", "LPOP l" + key + " 2",
		}[rng.IntN(8)]
		if rng.IntN(4) == 0 {
			c.send("MULTI\r\n" + command + "\r\nMGET s0 s1 s2 s3\r\nEXEC\r\n")
			c.expect("+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n")
		} else {
			c.send(command + "\r\n")
		}
		reply := c.reply()
		for reply != "" {
			line, rest, _ := strings.Cut(reply, "\r\n")
			reply = rest
			n, _ := strconv.Atoi(line[1:])
			if line[0] != '$' || n < 0 {
				require.NotEqual(c.t, byte('-'), line[0], line)
				continue
			}
			value := reply[:n]
			reply = reply[n+2:]
			for at := 0; n >= block && at < n; at += block {
				if b := value[at : at+block]; bytes.Count([]byte(b), []byte(b[:1])) != block {
					require.Fail(c.t, "a reply was changed under way", "%s: at %d of %d", command, at, n)
				}
			}
		}
	}
}

// BenchmarkLongGet reads long values over loopback, as fast as one client can.
func BenchmarkLongGet(b *testing.B) {
	for _, kind := range transports() {
		for _, size := range []int{100_000, 900_000} {
			b.Run(fmt.Sprintf("%s/%d", kind, size), func(b *testing.B) {
				f := start(b, kind)
				c := f.dial()
				require.Equal(b, okReply, c.do("SET", "long", strings.Repeat("v", size)))
				request, reply := frame("GET", "long"), int64(size+len(fmt.Sprintf("$%d\r\n\r\n", size)))
				require.NoError(b, c.SetDeadline(time.Time{}))
				b.SetBytes(int64(size))
				for b.Loop() {
					_, err := c.Write(request)
					require.NoError(b, err)
					_, err = io.CopyN(io.Discard, c.r, reply)
					require.NoError(b, err)
				}
			})
		}
	}
}
