package server_test

import (
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands/env"
)

// Replies with all that fillShort has made are longer than what a kernel takes of them.
const (
	shortValues = 600
	shortSize   = 15_000
)

// fillShort makes keys of strings, and collections of as many elements.
func (c *client) fillShort() (keys []string) {
	c.t.Helper()
	for i := range shortValues {
		key := fmt.Sprintf("value:%d", i)
		value := fmt.Sprintf("%05d", i) + strings.Repeat("v", shortSize-5)
		require.Equal(c.t, okReply, c.do("SET", key, value))
		c.do("HSET", "hash", key, value)
		c.do("RPUSH", "list", value)
		c.do("SADD", "set", value)
		keys = append(keys, key)
	}
	return keys
}

// TestRepliesOfManyShortValuesAreReservedFirst: whatever command it is, replies that copy
// much are made only while there is memory for them, however many clients ask and do not
// read, and a client that reads gets its reply.
func TestRepliesOfManyShortValuesAreReservedFirst(t *testing.T) {
	const unread, size = 10, shortValues * shortSize
	for _, kind := range transports() {
		f := start(t, kind, "--maxmemory", "100mb", "--maxmemory-clients", "6mb", "--write-timeout", "3600")
		witness := f.dial()
		keys := witness.fillShort()
		for i := range 40 {
			words := []string{"MSET"}
			for j := range 500 {
				words = append(words, fmt.Sprintf("long:%d:%05d", j, i)+strings.Repeat("k", 450), "")
			}
			witness.do(words...)
		}
		var queue []byte
		for _, key := range keys {
			queue = append(queue, frame("GET", key)...)
		}
		for name, packet := range map[string]string{
			"MGET":      string(frame(append([]string{"MGET"}, keys...)...)),
			"HMGET":     string(frame(append([]string{"HMGET", "hash"}, keys...)...)),
			"HGETALL":   "HGETALL hash\r\n",
			"LRANGE":    "LRANGE list 0 -1\r\n",
			"SMEMBERS":  "SMEMBERS set\r\n",
			"HSCAN":     "HSCAN hash 0\r\n",
			"SSCAN":     "SSCAN set 0 MATCH *v\r\n",
			"KEYS":      "KEYS long:*\r\n",
			"SCAN":      "SCAN 0 COUNT 100000\r\n",
			"EXEC":      "MULTI\r\n" + string(queue) + "EXEC\r\n",
			"EXEC MGET": "MULTI\r\n" + string(frame(append([]string{"MGET"}, keys...)...)) + "EXEC\r\n",
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				var mute []*client
				for range unread {
					c := f.dial().slowly()
					c.send(packet)
					mute = append(mute, c)
				}
				eventually(t, "some wait for the memory of others' replies", f.Engine().Pressed)
				require.Less(t, f.Engine().LargeReplies(), int64(3*size), "there is room for one")
				require.Less(t, witness.infoNumber("mem_clients_normal"), int64(4*size))
				reader := f.dial()
				reader.send(packet)
				for _, c := range mute {
					require.NoError(t, c.Close())
				}
				if strings.HasPrefix(name, "EXEC") {
					for got := reader.reply(); ; got = reader.reply() {
						if got != okReply && got != queuedReply {
							require.Greater(t, len(got), size)
							break
						}
					}
				} else {
					require.Greater(t, len(reader.reply()), size)
				}
				eventually(t, "all is given back", func() bool { return f.Engine().LargeReplies() == 0 })
				require.Zero(t, witness.infoNumber("evicted_clients"))
			})
		}
	}
}

// TestLargeRepliesInTheBackgroundAreWhole compares replies that are made in pieces with
// replies that are made at once.
func TestLargeRepliesInTheBackgroundAreWhole(t *testing.T) {
	c := start(t, transports()[0]).dial()
	keys := c.fillShort()
	for i := range 3 { // long ones between the short
		c.do("SET", keys[50*i+7], strings.Repeat("l", 20_000+i))
		c.do("HSET", "hash", keys[50*i+9], strings.Repeat("h", 30_000+i))
	}
	for _, words := range [][]string{append([]string{"MGET"}, keys...), append([]string{"HMGET", "hash"}, keys...)} {
		var want strings.Builder
		fmt.Fprintf(&want, "*%d\r\n", len(keys))
		for _, key := range keys {
			if words[0] == "MGET" {
				want.WriteString(c.do("GET", key))
			} else {
				want.WriteString(c.do("HGET", "hash", key))
			}
		}
		require.Equal(t, want.String(), c.do(words...))
		c.send("MULTI\r\n" + string(frame(words...)) + "ECHO behind\r\nEXEC\r\n")
		c.expect(okReply, queuedReply, queuedReply, array(want.String(), bulk("behind")))
	}
	all, scanned := c.do("HGETALL", "hash"), c.do("HSCAN", "hash", "0")
	require.Equal(t, strings.TrimPrefix(all, "*1200\r\n"), strings.TrimPrefix(scanned, "*2\r\n$1\r\n0\r\n*1200\r\n"))
	require.Equal(t, scanned, c.do("HSCAN", "hash", "0", "MATCH", "value:*"))
}

// roomOfScripts starts an engine whose scripts have the room that the result sets.
func roomOfScripts(t *testing.T, kind string) (e *engine, room *atomic.Int64) {
	room = new(atomic.Int64)
	room.Store(math.MaxInt64 - 1)
	e = startEngineWith(t, kind, func(st env.Store) env.Store { return st }, func(o *env.Options) {
		o.ScriptRoom = func() (bound, kept int64) { return room.Load(), 0 }
	})
	return e, room
}

// holding has a client hold a large reply that it does not read.
func (e *engine) holding(t *testing.T, keys []string) *client {
	holder := e.dial().slowly()
	holder.command(append([]string{"MGET"}, keys...)...)
	eventually(t, "a reply is held", func() bool { return e.LargeReplies() > 0 })
	return holder
}

// TestScriptThatLacksMemoryWaitsForReplies: where others' replies take the memory that a
// script needs it is run again once they have left, wherever it runs; where nobody's do,
// and where it may have done something by then, it is an error as before.
func TestScriptThatLacksMemoryWaitsForReplies(t *testing.T) {
	const build = "local s = string.rep('x', 3000000) "
	for name, source := range map[string]string{
		"straight":  build + "return #s",
		"aside":     "local n = 0 while n < 1 do n = n + 1 end " + build + "return #s",
		"moved":     "local n = 0 while n < 100000 do n = n + 1 end " + build + "return #s",
		"its reply": build + "local r = {} for i = 1, 3 do r[i] = s end return #r * 1000000",
		"long":      build + "return #s " + strings.Repeat(" ", 4<<10),
		"reads":     "redis.call('GET', 'value:1') " + build + "return #s",
	} {
		for _, kind := range transports() {
			t.Run(name+" "+kind, func(t *testing.T) {
				e, room := roomOfScripts(t, kind)
				c := e.dial()
				keys := c.fillShort()
				holder := e.holding(t, keys)
				room.Store(1)
				c.command("EVAL", source, "0")
				eventually(t, "it waits", e.Pressed)
				require.Equal(t, "+PONG\r\n", e.dial().do("PING"), "and nobody else does")
				room.Store(math.MaxInt64 - 1)
				require.NoError(t, holder.Close())
				require.Equal(t, ":3000000\r\n", c.reply())
			})
		}
	}
	e, room := roomOfScripts(t, transports()[0])
	c := e.dial()
	keys := c.fillShort()
	room.Store(1)
	require.Contains(t, c.do("EVAL", build+"return #s", "0"), "-ERR not enough memory", "nobody else has any")
	room.Store(math.MaxInt64 - 1)
	holder := e.holding(t, keys)
	room.Store(1)
	require.Contains(t, c.do("EVAL", "redis.call('INCR', 'n') "+build+"return #s", "0"), "-ERR not enough memory", "it has written")
	require.Equal(t, bulk("1"), c.do("GET", "n"))
	c.send("MULTI\r\n" + string(frame("EVAL", build+"return #s", "0")) + "EXEC\r\n")
	c.expect(okReply, queuedReply)
	require.Contains(t, c.reply(), "-ERR not enough memory", "a transaction has begun")
	require.NoError(t, holder.Close())
	eventually(t, "all is given back", func() bool { return e.LargeReplies() == 0 })
}

// TestResultsOfScriptsAreNotTheirReaders: what a script returns is counted as a large
// reply, so that nobody is closed for it, and the next one waits until it has left.
func TestResultsOfScriptsAreNotTheirReaders(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--maxmemory", "100mb", "--maxmemory-clients", "4mb", "--write-timeout", "3600")
		witness := f.dial()
		for name, script := range map[string]string{
			"long strings":  "local s, r = string.rep('x', 500000), {} for i = 1, 12 do r[i] = s .. i end return r",
			"short strings": "local s, r = string.rep('x', 500), {} for i = 1, 12000 do r[i] = s .. i end return r",
			"as it came":    "return redis.call('LRANGE', 'list', 0, -1)",
		} {
			for i := range 800 {
				witness.do("RPUSH", "list", strings.Repeat("v", 10_000+i))
			}
			want := witness.do("EVAL", script, "0")
			var mute []*client
			for range 3 {
				c := f.dial().slowly()
				c.command("EVAL", script, "0")
				mute = append(mute, c)
			}
			eventually(t, name+": others wait", f.Engine().Pressed)
			require.Zero(t, witness.infoNumber("evicted_clients"), name)
			reader := f.dial()
			reader.command("EVAL", script, "0")
			for _, c := range mute {
				require.NoError(t, c.Close())
			}
			require.Equal(t, want, reader.reply(), name)
			witness.do("DEL", "list")
		}
	})
}
