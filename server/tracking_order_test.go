package server_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInvalidationComesBeforeTheReplyToWhatIsAskedAfterTheWrite: once a writer has its
// reply, nobody who asks for anything is answered before he is told of the write, however
// many there are to be told. This is the order of Redis: it tells all before any reply
// leaves.
func TestInvalidationComesBeforeTheReplyToWhatIsAskedAfterTheWrite(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		const n = 500 // more than are told on a loop
		f := start(t, kind, "--tcp-backlog", "2048")
		writer, plain := f.dial(), f.dial()
		require.Contains(t, plain.do("HELLO", "3"), "%7")
		all, read := make([]*client, n), make([]*client, n)
		for i := range all {
			all[i] = f.tracker("BCAST")
			read[i] = f.tracker()
		}
		redirects := f.dial()
		require.Equal(t, okReply, redirects.do("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "k", "REDIRECT", plain.id()))
		for round := range 20 {
			key := fmt.Sprintf("k%d", round)
			for _, r := range read {
				r.do("GET", key)
			}
			require.Equal(t, okReply, writer.do("SET", key, "v"))
			for _, c := range []*client{all[0], all[n-1], read[0], read[n-1], plain} {
				c.send("PING\r\n")
				c.expect(invalidated(key), "+PONG\r\n")
			}
			for _, c := range append(all[1:n-1:n-1], read[1:n-1]...) {
				require.Equal(t, invalidated(key), c.reply())
			}
		}
		require.Equal(t, okReply, writer.do("FLUSHALL"))
		for _, c := range []*client{all[n-1], read[n-1], plain} {
			c.send("PING\r\n")
			c.expect(invalidatedAll, "+PONG\r\n")
		}
	})
}

// TestInvalidationOfAnOwnWriteComesBetweenReplies writes as a tracking client, also with
// BCAST. The invalidation comes behind the replies to what the client has sent together,
// in one message for a prefix, and before the reply to what it sends next.
func TestInvalidationOfAnOwnWriteComesBetweenReplies(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		for range 100 {
			f.tracker("BCAST")
		}
		a, quiet := f.tracker("BCAST"), f.tracker("BCAST", "NOLOOP")
		both := ">2\r\n" + bulk("invalidate") + array(bulk("k"), bulk("l"))
		for range 100 {
			require.Equal(t, okReply, a.do("SET", "k", "v"))
			a.send("PING\r\n")
			a.expect(invalidated("k"), "+PONG\r\n")
			require.Equal(t, okReply, a.do("MSET", "k", "v", "l", "v"))
			a.send("PING\r\n")
			a.expect(both, "+PONG\r\n")
			a.send("MULTI\r\nSET k v\r\nSET l v\r\nEXEC\r\n")
			a.expect(okReply, queuedReply, queuedReply, array(okReply, okReply))
			a.send("PING\r\n")
			a.expect(both, "+PONG\r\n")
			quiet.send("PING\r\n")
			quiet.expect(invalidated("k"), both, both, "+PONG\r\n")
			require.Equal(t, okReply, quiet.do("SET", "k", "v"))
			require.Equal(t, "+PONG\r\n", quiet.do("PING"))
			require.Equal(t, invalidated("k"), a.reply())
		}
	})
}

// TestLoweredTrackingTableMaxKeysActsAtOnce: CONFIG SET brings the table within the new
// bound without any read, and tells who had read what goes.
func TestLoweredTrackingTableMaxKeysActsAtOnce(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		const n, left = 3000, 10
		f := start(t, kind)
		a, other := f.tracker(), f.dial()
		for i := range n {
			a.do("GET", fmt.Sprintf("k%d", i))
		}
		require.EqualValues(t, n, other.infoNumber("tracking_total_keys"))
		require.Equal(t, okReply, other.do("CONFIG", "SET", "tracking-table-max-keys", fmt.Sprint(left)))
		for range n - left {
			require.Contains(t, a.reply(), "invalidate")
		}
		require.Equal(t, "+PONG\r\n", a.do("PING"))
		require.EqualValues(t, left, other.infoNumber("tracking_total_keys"))
		require.EqualValues(t, left, other.infoNumber("tracking_total_items"))
		require.Equal(t, okReply, other.do("CONFIG", "SET", "tracking-table-max-keys", "0"))
		require.EqualValues(t, left, other.infoNumber("tracking_total_keys"))
	})
}
