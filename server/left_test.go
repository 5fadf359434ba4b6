package server_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A window of one unit a minute that starts with its first hit: whoever comes second
// waits for the end of the minute.
const (
	takeWindow = "SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST\r\n"
	waitWindow = "SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST BLOCK 0\r\n"
)

// fill uses the window up.
func (f *fixture) fill(c *client) {
	f.t.Helper()
	c.send(takeWindow)
	c.expect(five(0, 1, 0, -1, 60))
}

// queue has n clients wait for the window, one behind the other.
func (f *fixture) queue(n int, command string) []*client {
	f.t.Helper()
	before := f.Keyspace().Waiting()
	conns := make([]*client, n)
	for i := range conns {
		conns[i] = f.dial()
		conns[i].send(command)
		eventually(f.t, "it waits", func() bool { return f.Keyspace().Waiting() == before+i+1 })
	}
	return conns
}

// silent wants nobody of conns to have been answered. It gives the server no time: what
// could have happened has been waited for by the caller.
func silent(t *testing.T, conns ...*client) {
	t.Helper()
	for i, c := range conns {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(5*time.Millisecond)))
		_, err := c.r.Peek(1)
		var timeout net.Error
		require.ErrorAs(t, err, &timeout, "client %d was answered", i)
		require.True(t, timeout.Timeout(), "client %d is gone", i)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
	}
}

// listen returns a client of a protocol that has subscribed to the channels.
func (f *fixture) listen(proto string, channels ...string) *client {
	c := f.dial()
	c.do("HELLO", proto)
	c.command(append([]string{"SUBSCRIBE"}, channels...)...)
	for range channels {
		require.Contains(f.t, c.reply(), "subscribe")
	}
	return c
}

// told encodes the message that a client of a protocol gets.
func told(proto, channel, body string) string {
	m := array(bulk("message"), bulk(channel), bulk(body))
	if proto == "3" {
		return ">" + m[1:]
	}
	return m
}

// invalidated is the push that a tracking client is sent for one key.
func invalidated(key string) string {
	return ">2\r\n" + bulk("invalidate") + array(bulk(key))
}

// invalidatedAll is the one for a flush.
const invalidatedAll = ">2\r\n$10\r\ninvalidate\r\n_\r\n"

// tracker is a RESP3 client that tracks with the given options.
func (f *fixture) tracker(options ...string) *client {
	f.t.Helper()
	c := f.dial()
	require.Contains(f.t, c.do("HELLO", "3"), "%7")
	require.Equal(f.t, okReply, c.do(append([]string{"CLIENT", "TRACKING", "ON"}, options...)...))
	return c
}
