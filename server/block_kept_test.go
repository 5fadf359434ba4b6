package server_test

import (
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/server"
	"github.com/cellserver/cellserver/session"
	long "github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/transport"
)

// records keeps what it is handed by counting it.
type records struct{ n atomic.Uint64 }

// Append implements keyspace.Journal.
func (r *records) Append(_ []byte, refs []long.Ref, _ limit.Instant) uint64 {
	long.ReleaseAll(refs)
	return r.n.Add(1)
}

func (r *records) Refuses() bool { return false }

// Await implements commands.Persistence.
func (r *records) Await(uint64, transport.Peer) transport.Outcome { return transport.Kept }

func (r *records) Position() uint64      { return r.n.Load() }
func (r *records) Fault() string         { return "" }
func (r *records) Awaited() bool         { return false }
func (r *records) Save() error           { return nil }
func (r *records) Start() bool           { return true }
func (r *records) LastSave() int64       { return 0 }
func (r *records) Info() []env.InfoField { return nil }

// silentPeer is the transport's end of a connection that is never read.
type silentPeer struct{}

func (silentPeer) Wake()  {}
func (silentPeer) Abort() {}

func (silentPeer) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (silentPeer) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }

func (silentPeer) Held() (input, output int64) { return 0, 0 }

// eagerPeer has its session fed the moment that it is woken, as by a loop that was just
// about to look.
type eagerPeer struct {
	silentPeer
	feed func()
}

func (p *eagerPeer) Wake() { p.feed() }

// TestBlockedCallIsAnsweredBehindItsRecord: a call that has waited for room is answered
// once its effect is recorded, so that its reply waits for that record however soon it is
// sent.
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
			synctest.Test(t, func(t *testing.T) {
				journal, clock := &records{}, clocktest.New(inproc.Epoch)
				ks := keyspace.New(keyspace.Options{Clock: clock})
				ks.SetJournal(journal)
				began := time.Now()
				e := session.NewEngine(env.Options{
					Ledger: ks.Ledger(), NewStore: func() env.Store { return server.NewStore(ks) }, Persistence: journal,
					Stopwatch: func() time.Duration { return time.Since(began) }, Now: clock.Now,
					Settings: config.Default(), Log: slog.New(slog.DiscardHandler),
				}, commands.NewTable())
				defer ks.Close()
				defer e.Close()
				other, _ := e.Open(silentPeer{})
				do := func(args ...string) string {
					return string(other.Feed(e.NewWorker(), inproc.Encode(nil, args...), nil).Out)
				}
				require.Contains(t, do(c.first...), "*5\r\n:0\r\n")
				turns, peer := make(chan transport.Turn, 1), &eagerPeer{}
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
