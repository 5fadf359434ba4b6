package tracking_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestInvalidationComesBeforeTheReplyToWhatIsAskedAfterTheWrite: once a writer has its reply,
// each tracking client gets the invalidation before the reply to its next command, however many
// clients are tracking. Redis has the same order, since it sends all invalidations before any
// reply.
func TestInvalidationComesBeforeTheReplyToWhatIsAskedAfterTheWrite(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		const n = 500 // more than tellInline
		f := w.Start("--tcp-backlog", "2048")
		writer, plain := f.Dial(), f.Dial()
		require.Contains(t, plain.Do("HELLO", "3"), "%7")
		all, read := make([]*inproc.Client, n), make([]*inproc.Client, n)
		for i := range all {
			all[i] = tracker(t, f, "BCAST")
			read[i] = tracker(t, f)
		}
		redirects := f.Dial()
		require.Equal(t, inproc.OK, redirects.Do("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "k", "REDIRECT", plain.ID()))
		for round := range 20 {
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

// TestInvalidationOfAnOwnWriteComesBetweenReplies: a tracking client writes, also with BCAST. The
// invalidation comes after the replies to the batch that the client has sent, in one message for
// a prefix, and before the reply to its next batch.
func TestInvalidationOfAnOwnWriteComesBetweenReplies(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		for range 100 {
			tracker(t, f, "BCAST")
		}
		a, quiet := tracker(t, f, "BCAST"), tracker(t, f, "BCAST", "NOLOOP")
		both := ">2\r\n" + inproc.Bulk("invalidate") + inproc.Array(inproc.Bulk("k"), inproc.Bulk("l"))
		for range 100 {
			require.Equal(t, inproc.OK, a.Do("SET", "k", "v"))
			a.Send("PING\r\n")
			a.Expect(invalidated("k"), "+PONG\r\n")
			require.Equal(t, inproc.OK, a.Do("MSET", "k", "v", "l", "v"))
			a.Send("PING\r\n")
			a.Expect(both, "+PONG\r\n")
			a.Send("MULTI\r\nSET k v\r\nSET l v\r\nEXEC\r\n")
			a.Expect(inproc.OK, inproc.Queued, inproc.Queued, inproc.Array(inproc.OK, inproc.OK))
			a.Send("PING\r\n")
			a.Expect(both, "+PONG\r\n")
			quiet.Send("PING\r\n")
			quiet.Expect(invalidated("k"), both, both, "+PONG\r\n")
			require.Equal(t, inproc.OK, quiet.Do("SET", "k", "v"))
			require.Equal(t, "+PONG\r\n", quiet.Do("PING"))
			require.Equal(t, invalidated("k"), a.Reply())
		}
	})
}

// TestLoweredTrackingTableMaxKeysActsAtOnce: CONFIG SET brings the table within the new bound
// without any read, and the readers of evicted keys get invalidations.
func TestLoweredTrackingTableMaxKeysActsAtOnce(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		const n, left = 3000, 10
		f := w.Start()
		a, other := tracker(t, f), f.Dial()
		for i := range n {
			a.Do("GET", fmt.Sprintf("k%d", i))
		}
		require.EqualValues(t, n, other.InfoNumber("tracking_total_keys"))
		require.Equal(t, inproc.OK, other.Do("CONFIG", "SET", "tracking-table-max-keys", fmt.Sprint(left)))
		for range n - left {
			require.Contains(t, a.Reply(), "invalidate")
		}
		require.Equal(t, "+PONG\r\n", a.Do("PING"))
		require.EqualValues(t, left, other.InfoNumber("tracking_total_keys"))
		require.EqualValues(t, left, other.InfoNumber("tracking_total_items"))
		require.Equal(t, inproc.OK, other.Do("CONFIG", "SET", "tracking-table-max-keys", "0"))
		require.EqualValues(t, left, other.InfoNumber("tracking_total_keys"))
	})
}
