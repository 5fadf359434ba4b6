package scripting_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
)

// TestScriptsSeeLongValuesAsTheyWere: a long value that a script has read does not change when
// the script, or a later command, changes its key.
func TestScriptsSeeLongValuesAsTheyWere(t *testing.T) {
	value := strings.Repeat("0123456789", 4000)
	get := "local v = redis.call('GET', KEYS[1]) "
	bodies := map[string]string{
		"return redis.call('GET', KEYS[1])":         inproc.Bulk(value),
		get + "return {v:sub(11), v:sub(1, 3), #v}": inproc.Array(inproc.Bulk(value[10:]), inproc.Bulk("012"), ":40000\r\n"),
		get + "redis.call('SETRANGE', KEYS[1], 0, 'new') return {v, redis.call('GETRANGE', KEYS[1], 0, 3)}":                 inproc.Array(inproc.Bulk(value), inproc.Bulk("new3")),
		get + "redis.call('APPEND', KEYS[1], 'new') return {v, redis.call('STRLEN', KEYS[1])}":                              inproc.Array(inproc.Bulk(value), ":40003\r\n"),
		get + "redis.call('DEL', KEYS[1]) return v":                                                                         inproc.Bulk(value),
		get + "redis.call('SET', KEYS[2], v) return {redis.call('GETDEL', KEYS[1]), redis.call('GETDEL', KEYS[2])}":         inproc.Array(inproc.Bulk(value), inproc.Bulk(value)),
		"return redis.call('GETDEL', KEYS[1])":                                                                              inproc.Bulk(value),
		get + "local w = redis.call('SET', KEYS[1], 'new', 'GET') return {v, w}":                                            inproc.Array(inproc.Bulk(value), inproc.Bulk(value)),
		"return redis.call('GETRANGE', KEYS[1], 5, 30004)":                                                                  inproc.Bulk(value[5:30005]),
		"redis.call('DEL', KEYS[2]) redis.call('RPUSH', KEYS[2], 'a', ARGV[3]) return redis.call('LRANGE', KEYS[2], 0, -1)": inproc.Array(inproc.Bulk("a"), inproc.Bulk(value)),
	}
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		c := s.Dial()
		for body, want := range bodies {
			for _, script := range scriptModes(body) {
				for _, after := range []string{"SETRANGE x 0 later", "APPEND x later", "DEL x", "SET x later"} {
					require.Equal(t, inproc.OK, c.Do("SET", "x", value))
					c.Send(string(inproc.Encode(nil, "EVAL", script, "2", "x", "y", "x", "y", value)) + after + "\r\n")
					require.Equal(t, want, c.Reply(), "%s, %s", script, after)
					c.Reply()
					require.Equal(t, inproc.OK, c.Do("SET", "x", value))
					c.Send("MULTI\r\n" + string(inproc.Encode(nil, "EVAL", script, "2", "x", "y", "x", "y", value)) + after + "\r\nEXEC\r\n")
					c.Expect(inproc.OK, inproc.Queued, inproc.Queued)
					require.True(t, strings.HasPrefix(c.Reply(), "*2\r\n"+want), "%s, %s in a transaction", script, after)
				}
			}
		}
	})
}

// TestScriptsReadOneValueAgainAndAgain: neither the references that a script gets nor the values
// that it overwrites accumulate.
func TestScriptsReadOneValueAgainAndAgain(t *testing.T) {
	effort.Alone(t)
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--maxmemory", "64mb")
		c := s.Dial()
		require.Equal(t, inproc.OK, c.Do("SET", "x", strings.Repeat("v", 20_000)))
		full := c.InfoNumber("used_memory_dataset")
		for _, body := range []string{
			"redis.call('GET', KEYS[1])",
			"redis.call('SET', KEYS[1], redis.call('GET', KEYS[1]))",
			"redis.call('SETRANGE', KEYS[1], i % 10000, redis.call('GET', KEYS[1]):sub(1, 10))",
		} {
			script := fmt.Sprintf("for i = 1, 20000 do %s end return redis.call('STRLEN', KEYS[1])", body)
			require.Equal(t, ":20000\r\n", c.Do("EVAL", script, "1", "x"), body)
			require.InDelta(t, full, c.InfoNumber("used_memory_dataset"), 300_000, body)
		}
	})
}
