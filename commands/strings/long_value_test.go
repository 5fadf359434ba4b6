package strings_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestLongValueIsStoredOrRefusedAndItsConnectionKept: values of the size that caches store are
// accepted. The error for longer ones names the option, comes in the order of the commands, and
// keeps the connection.
func TestLongValueIsStoredOrRefusedAndItsConnectionKept(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		c := s.Dial()
		value := strings.Repeat("v", 5_000_000)
		require.Equal(t, inproc.OK, c.Do("SET", "long", value))
		require.Equal(t, inproc.Bulk(value), c.Do("GET", "long"), "it is read as it was set")
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "proto-max-bulk-len", "1mb"))
		c.Send("ECHO before\r\n" + string(inproc.Encode(nil, "SET", "k", value)) + "ECHO behind\r\n")
		c.Expect(inproc.Bulk("before"), "-ERR an argument of 5000000 bytes is longer than proto-max-bulk-len, 1048576\r\n", inproc.Bulk("behind"))
		require.Equal(t, ":0\r\n", c.Do("EXISTS", "k"))
		require.Equal(t, inproc.OK, c.Do("MULTI"))
		require.Contains(t, c.Do("SET", "k", value), "proto-max-bulk-len")
		require.Contains(t, c.Do("EXEC"), "-EXECABORT")
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "proto-max-bulk-len", "32mb", "client-query-buffer-limit", "2mb"))
		require.Equal(t, "-ERR the command is longer than client-query-buffer-limit admits, 2097152\r\n", c.Do("SET", "k", value))
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "client-query-buffer-limit", "33mb", "maxmemory-clients", "3mb"))
		require.Equal(t, "-ERR the command is longer than maxmemory-clients admits, 1572864\r\n", c.Do("SET", "k", value))
		require.Equal(t, inproc.Pong, c.Do("PING"))
		c.Send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2000000000\r\n")
		c.Expect("-ERR Protocol error: invalid bulk length\r\n")
		c.ExpectEnd()
	})
}

// TestRefusedValueIsNotKept: no part of a value that will be refused is kept in memory while it
// arrives.
func TestRefusedValueIsNotKept(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		const megabyte = 1_000_000
		s := w.Start("--proto-max-bulk-len", "1mb")
		c, witness := s.Dial(), s.Dial()
		c.Send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$50000000\r\n" + strings.Repeat("v", 20*megabyte))
		w.Settle()
		require.Greater(t, witness.InfoNumber("total_net_input_bytes"), int64(20*megabyte), "it has been thrown away")
		require.Less(t, witness.InfoNumber("mem_clients_normal"), int64(megabyte))
		c.Send(strings.Repeat("v", 30*megabyte) + "\r\n")
		require.Contains(t, c.Reply(), "an argument of 50000000 bytes")
	})
}
