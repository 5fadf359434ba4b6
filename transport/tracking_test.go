package transport_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// invalidated returns the push to a tracking client for one key.
func invalidated(key string) string {
	return ">2\r\n" + inproc.Bulk("invalidate") + inproc.Array(inproc.Bulk(key))
}

// invalidatedAll is the push for a flush.
const invalidatedAll = ">2\r\n$10\r\ninvalidate\r\n_\r\n"

// tracker returns a RESP3 client that tracks with the given options.
func tracker(t *testing.T, f *inproc.Served, options ...string) *inproc.Client {
	t.Helper()
	c := f.Dial()
	require.Contains(t, c.Do("HELLO", "3"), "%7")
	require.Equal(t, inproc.OK, c.Do(append([]string{"CLIENT", "TRACKING", "ON"}, options...)...))
	return c
}

// TestTrackingClientThatDoesNotReadIsClosed: an invalidation is never dropped. A client that does
// not read them is closed when there are too many, and so discards its cache.
func TestTrackingClientThatDoesNotReadIsClosed(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		f := inproc.Serve(t, kind, "--client-output-buffer-limit", "pubsub 64kb 0 0")
		other := f.Dial()
		a := tracker(t, f, "BCAST")
		require.NoError(t, a.Conn.(*net.TCPConn).SetReadBuffer(4096))
		other.Do("CLIENT", "SETNAME", "other")
		key := strings.Repeat("k", 16_000)
		inproc.Await(t, "closed", func() bool {
			for i := range 100 {
				other.Do("SET", fmt.Sprintf("%d%s", i, key), "v")
			}
			return other.InfoNumber("tracking_clients") == 0
		})
		require.Contains(t, f.Log.String(), "too many unread replies")
	})
}

// TestInvalidationComesBeforeTheReplyToWhatIsAskedAfterTheWrite: once a writer has its reply, every
// later reply to a tracking client comes after the invalidation of that write, however many clients
// get one. Redis has the same order: it sends all invalidations before any reply.
func TestInvalidationComesBeforeTheReplyToWhatIsAskedAfterTheWrite(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		const n = 500 // more than a loop serves in one step
		f := inproc.Serve(t, kind, "--tcp-backlog", "2048")
		writer, plain := f.Dial(), f.Dial()
		require.Contains(t, plain.Do("HELLO", "3"), "%7")
		all, read := make([]*inproc.Client, n), make([]*inproc.Client, n)
		for i := range all {
			all[i] = tracker(t, f, "BCAST")
			read[i] = tracker(t, f)
		}
		redirects := f.Dial()
		require.Equal(t, inproc.OK, redirects.Do("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "k", "REDIRECT", plain.ID()))
		for round := range 3 {
			key := fmt.Sprintf("k%d", round)
			for _, r := range read {
				r.Do("GET", key)
			}
			require.Equal(t, inproc.OK, writer.Do("SET", key, "v"))
			for _, c := range []*inproc.Client{all[0], all[n-1], read[0], read[n-1], plain} {
				c.Send("PING\r\n")
				c.Expect(invalidated(key), "+PONG\r\n")
			}
			for _, c := range append(all[1:n-1:n-1], read[1:n-1]...) {
				require.Equal(t, invalidated(key), c.Reply())
			}
		}
		require.Equal(t, inproc.OK, writer.Do("FLUSHALL"))
		for _, c := range []*inproc.Client{all[n-1], read[n-1], plain} {
			c.Send("PING\r\n")
			c.Expect(invalidatedAll, "+PONG\r\n")
		}
	})
}

// TestTrackerThatLeavesWhileItsTransactionRunsIsCountedOnce: a client that disconnects while its
// EXEC runs in the background, and whose EXEC then turns tracking on, is not counted as a tracking
// client afterwards. Other tracking clients keep getting invalidations.
func TestTrackerThatLeavesWhileItsTransactionRunsIsCountedOnce(t *testing.T) {
	inproc.EachTransport(t, func(t *testing.T, kind string) {
		s := inproc.Serve(t, kind)
		other := s.Dial()
		long := strings.Repeat("p", 10_000)
		c := tracker(t, s, "BCAST", "PREFIX", long)
		c.Send("MULTI\r\n" + string(inproc.Encode(nil, "EVAL", "while true do end", "0")) + "CLIENT TRACKING ON BCAST PREFIX q\r\nEXEC\r\n")
		c.Expect(inproc.OK, inproc.Queued, inproc.Queued)
		s.Clock.AwaitTimers(1)
		require.NoError(t, c.Conn.(*net.TCPConn).SetLinger(0))
		require.NoError(t, c.Close())
		inproc.Await(t, "it is forgotten", func() bool { return s.Engine().ClientMemory() < int64(len(long)) })
		s.Clock.Advance(5 * time.Second)
		require.Equal(t, inproc.OK, other.Do("SCRIPT", "KILL"))
		require.Zero(t, other.InfoNumber("tracking_clients"))
		require.Zero(t, other.InfoNumber("tracking_total_prefixes"))

		a := tracker(t, s)
		a.Do("GET", "k")
		other.Do("SET", "k", "v")
		require.Equal(t, invalidated("k"), a.Reply())
	})
}
