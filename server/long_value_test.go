package server_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLongValueIsStoredOrRefusedAndItsConnectionKept: what caches store is taken, and
// beyond that the error names the option, at its place among others.
func TestLongValueIsStoredOrRefusedAndItsConnectionKept(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		c := f.dial()
		value := strings.Repeat("v", 5*megabyte)
		require.Equal(t, okReply, c.do("SET", "long", value))
		require.Equal(t, bulk(value), c.do("GET", "long"), "it is read as it was set")
		require.Equal(t, okReply, c.do("CONFIG", "SET", "proto-max-bulk-len", "1mb"))
		c.send("ECHO before\r\n" + string(frame("SET", "k", value)) + "ECHO behind\r\n")
		c.expect(bulk("before"), "-ERR an argument of 5000000 bytes is longer than proto-max-bulk-len, 1048576\r\n", bulk("behind"))
		require.Equal(t, ":0\r\n", c.do("EXISTS", "k"))
		require.Equal(t, okReply, c.do("MULTI"))
		require.Contains(t, c.do("SET", "k", value), "proto-max-bulk-len")
		require.Contains(t, c.do("EXEC"), "-EXECABORT")
		require.Equal(t, okReply, c.do("CONFIG", "SET", "proto-max-bulk-len", "32mb", "client-query-buffer-limit", "2mb"))
		require.Equal(t, "-ERR the command is longer than client-query-buffer-limit admits, 2097152\r\n", c.do("SET", "k", value))
		require.Equal(t, okReply, c.do("CONFIG", "SET", "client-query-buffer-limit", "33mb", "maxmemory-clients", "3mb"))
		require.Equal(t, "-ERR the command is longer than maxmemory-clients admits, 1572864\r\n", c.do("SET", "k", value))
		require.Equal(t, "+PONG\r\n", c.do("PING"))
		c.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2000000000\r\n")
		c.expect("-ERR Protocol error: invalid bulk length\r\n")
		c.expectEnd()
	})
}

// TestRefusedValueIsNotKept: while it comes nothing of it is in memory.
func TestRefusedValueIsNotKept(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--proto-max-bulk-len", "1mb")
		c, witness := f.dial(), f.dial()
		c.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$50000000\r\n" + strings.Repeat("v", 20*megabyte))
		eventually(t, "it has been thrown away", func() bool { return witness.infoNumber("total_net_input_bytes") > 19*megabyte })
		require.Less(t, witness.infoNumber("mem_clients_normal"), int64(megabyte))
		c.send(strings.Repeat("v", 30*megabyte) + "\r\n")
		require.Contains(t, c.reply(), "an argument of 50000000 bytes")
	})
}
