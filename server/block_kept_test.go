package server_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/transport"
)

// eagerPeer feeds its session as soon as it is woken, like an event loop that was just about to
// check it.
type eagerPeer struct {
	transport.Peer
	feed func()
}

func (p *eagerPeer) Wake() { p.feed() }

// TestBlockedCallIsAnsweredBehindItsRecord: a call that has waited for room is answered after its
// effect was recorded, so that its reply waits for that record however soon it is sent.
func TestBlockedCallIsAnsweredBehindItsRecord(t *testing.T) {
	for _, c := range []struct {
		name         string
		first, wants []string
		makeRoom     func(do func(args ...string) string, clock *clocktest.Clock)
	}{
		{
			"a place that is released",
			[]string{"CC.ACQUIRE", "room", "1", "60", "me"},
			[]string{"CC.ACQUIRE", "room", "1", "60", "you", "BLOCK", "0"},
			func(do func(args ...string) string, _ *clocktest.Clock) {
				require.Equal(t, ":1\r\n", do("CC.RELEASE", "room", "me"))
			},
		},
		{
			"a window that is over",
			[]string{"SW.ALLOW", "window", "1", "60", "1", "FIXED", "ANCHOR", "FIRST"},
			[]string{"SW.ALLOW", "window", "1", "60", "1", "FIXED", "ANCHOR", "FIRST", "BLOCK", "0"},
			func(_ func(args ...string) string, clock *clocktest.Clock) { clock.Advance(time.Minute) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				journal := &records{}
				e, ks, clock := startKept(t, journal)
				other, _ := e.Open(inproc.NewPeer())
				do := func(args ...string) string {
					return string(other.Feed(e.NewWorker(), inproc.Encode(nil, args...), nil).Out)
				}
				require.Contains(t, do(c.first...), "*5\r\n:0\r\n")
				turns, peer := make(chan transport.Turn, 1), &eagerPeer{Peer: inproc.NewPeer()}
				session, _ := e.Open(peer)
				peer.feed = func() { turns <- session.Feed(e.NewWorker(), nil, nil) }
				require.Equal(t, transport.Wait, session.Feed(e.NewWorker(), inproc.Encode(nil, c.wants...), nil).Next)
				c.makeRoom(do, clock)
				turn := <-turns
				require.Contains(t, string(turn.Out), "*5\r\n:0\r\n")
				synctest.Wait()
				require.Zero(t, ks.Waiting())
				require.Equal(t, journal.n.Load(), turn.Barrier, "the record of the call is the last")
			})
		})
	}
}
