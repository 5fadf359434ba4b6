package elements_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
)

// TestRepliesOfManyShortValuesAreReservedFirst: replies of any command that copy much are built
// only while there is memory for them, however many clients ask for them without reading, and a
// client that reads gets its reply.
func TestRepliesOfManyShortValuesAreReservedFirst(t *testing.T) {
	effort.Alone(t)
	const unread, size = 5, inproc.ShortValues * inproc.ShortSize
	for name, packet := range map[string]func(keys []string) string{
		"MGET":     func(keys []string) string { return call("MGET", keys...) },
		"HMGET":    func(keys []string) string { return call("HMGET", append([]string{"hash"}, keys...)...) },
		"HGETALL":  func([]string) string { return "HGETALL hash\r\n" },
		"LRANGE":   func([]string) string { return "LRANGE list 0 -1\r\n" },
		"SMEMBERS": func([]string) string { return "SMEMBERS set\r\n" },
		"HSCAN":    func([]string) string { return "HSCAN hash 0\r\n" },
		"SSCAN":    func([]string) string { return "SSCAN set 0 MATCH *v\r\n" },
		"KEYS":     func([]string) string { return "KEYS long:*\r\n" },
		"SCAN":     func([]string) string { return "SCAN 0 COUNT 100000\r\n" },
		"EXEC": func(keys []string) string {
			queue := "MULTI\r\n"
			for _, key := range keys {
				queue += call("GET", key)
			}
			return queue + "EXEC\r\n"
		},
		"EXEC MGET": func(keys []string) string { return "MULTI\r\n" + call("MGET", keys...) + "EXEC\r\n" },
	} {
		t.Run(name, func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				s := w.Start("--maxmemory", "100mb", "--maxmemory-clients", "6mb", "--write-timeout", "3600")
				witness := s.Dial()
				packet := packet(witness.FillShort())
				for i := range 40 {
					words := []string{"MSET"}
					for j := range 500 {
						words = append(words, fmt.Sprintf("long:%d:%05d", j, i)+strings.Repeat("k", 450), "")
					}
					witness.Do(words...)
				}
				var mute []*inproc.Client
				for range unread {
					c := s.Dial()
					c.Send(packet)
					mute = append(mute, c)
				}
				w.Settle()
				require.True(t, s.Engine().Pressed(), "some wait for the memory of others' replies")
				require.Less(t, s.Engine().LargeReplies(), int64(3*size), "there is room for one")
				require.Less(t, witness.InfoNumber("mem_clients_normal"), int64(4*size))
				reader := s.Dial()
				reader.Send(packet)
				for _, c := range mute {
					require.NoError(t, c.Close())
				}
				got := reader.Reply()
				for got == inproc.OK || got == inproc.Queued {
					got = reader.Reply()
				}
				require.Greater(t, len(got), size)
				w.Settle()
				require.Zero(t, s.Engine().LargeReplies(), "all is given back")
				require.Zero(t, witness.InfoNumber("evicted_clients"))
			})
		})
	}
}

// call encodes a command.
func call(name string, words ...string) string {
	return string(inproc.Encode(nil, append([]string{name}, words...)...))
}

// TestLargeRepliesInTheBackgroundAreWhole: replies that are built in pieces equal replies that
// are built at once.
func TestLargeRepliesInTheBackgroundAreWhole(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		keys := c.FillShort()
		for i := range 3 { // long values between short ones
			c.Do("SET", keys[50*i+7], strings.Repeat("l", 20_000+i))
			c.Do("HSET", "hash", keys[50*i+9], strings.Repeat("h", 30_000+i))
		}
		for _, words := range [][]string{append([]string{"MGET"}, keys...), append([]string{"HMGET", "hash"}, keys...)} {
			var want strings.Builder
			fmt.Fprintf(&want, "*%d\r\n", len(keys))
			for _, key := range keys {
				if words[0] == "MGET" {
					want.WriteString(c.Do("GET", key))
				} else {
					want.WriteString(c.Do("HGET", "hash", key))
				}
			}
			require.Equal(t, want.String(), c.Do(words...))
			c.Send("MULTI\r\n" + string(inproc.Encode(nil, words...)) + "ECHO behind\r\nEXEC\r\n")
			c.Expect(inproc.OK, inproc.Queued, inproc.Queued, inproc.Array(want.String(), inproc.Bulk("behind")))
		}
		all, scanned := c.Do("HGETALL", "hash"), c.Do("HSCAN", "hash", "0")
		require.Equal(t, strings.TrimPrefix(all, "*1200\r\n"), strings.TrimPrefix(scanned, "*2\r\n$1\r\n0\r\n*1200\r\n"))
		require.Equal(t, scanned, c.Do("HSCAN", "hash", "0", "MATCH", "value:*"))
	})
}
