package remotedouble

import (
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote/adapter"
	"github.com/cellserver/cellserver/session"
	"github.com/cellserver/cellserver/transport"
)

// Server is an engine without a keyspace of its own. A double decides its asks.
type Server struct {
	*session.Engine
	Double *Double
	Clock  *clocktest.Clock
	Stores *adapter.Stores
}

// NewServer returns a server with a new double, and with a clock that stands at start. seed is that
// of the double. set may change the options of the engine; it may be nil.
func NewServer(start limit.Instant, seed uint64, set func(o *env.Options)) (*Server, error) {
	clock := clocktest.New(start)
	return Share(New(keyspace.New(keyspace.Options{Databases: 1, Clock: clock}), seed), clock, set)
}

// Share returns another server that uses the double d. clock must be the clock of the keyspace of
// d.
func Share(d *Double, clock *clocktest.Clock, set func(o *env.Options)) (*Server, error) {
	table, err := commands.NewStoreTable(nil)
	if err != nil {
		return nil, fmt.Errorf("making the table: %w", err)
	}
	s := &Server{Double: d, Clock: clock}
	s.Stores = adapter.New(d, func(d time.Duration, f func()) (stop func() bool) { return clock.AfterFunc(d, f).Stop })
	began := time.Now()
	o := env.Options{
		NewStore: s.Stores.NewStore, Remote: s.Stores.Remote(), Settings: config.Default(),
		Stopwatch: func() time.Duration { return time.Since(began) },
	}
	if set != nil {
		set(&o)
	}
	s.Engine = session.NewEngine(o, table)
	return s, nil
}

// Close ends the server and its double, and closes the keyspace. All sessions must be closed
// before.
func (s *Server) Close() {
	s.Engine.Drain()
	s.Engine.Close()
	s.Double.Close()
	s.Double.Keyspace.Close()
}

// Session is the session of a client without a socket. Its engine need not use a double.
type Session struct {
	transport.Session
	worker transport.Worker
	peer   *peer
	Turns  int // number of calls of Turn so far
}

// Open opens a session of e, with a worker that only this session uses.
func Open(e *session.Engine) (*Session, error) { return OpenWith(e, e.NewWorker()) }

// OpenWith opens a session of e with the given worker. Other sessions may use the worker, too, but
// not at the same time.
func OpenWith(e *session.Engine, worker transport.Worker) (*Session, error) {
	p := &peer{wake: make(chan struct{}, 1)}
	opened, rejection := e.Open(p)
	if opened == nil {
		return nil, fmt.Errorf("the server refused the session: %q", rejection)
	}
	return &Session{Session: opened, worker: worker, peer: p}, nil
}

// Feed feeds the session with in, and returns the replies to all complete commands. over is true if
// the session has been closed. If a command waits, Feed waits until it is woken.
func (s *Session) Feed(in []byte) (out []byte, over bool) {
	_, out, over = s.FeedMore(in, nil)
	return out, over
}

// FeedMore does the same as Feed. It appends the replies to out, and also returns the rest of in,
// which is the beginning of an incomplete command.
func (s *Session) FeedMore(in, out []byte) (rest, replies []byte, over bool) {
	for {
		var next transport.Next
		in, out, next = s.Turn(in, out)
		switch next {
		case transport.Again:
		case transport.Park, transport.Wait:
			<-s.peer.wake
		case transport.Close:
			return in, out, true
		default:
			return in, out, false
		}
	}
}

// Turn feeds the session once. It returns the rest of in, out with the replies appended, and what
// the session does next.
func (s *Session) Turn(in, out []byte) (rest, replies []byte, next transport.Next) {
	s.Turns++
	select {
	case <-s.peer.wake: // the next Feed is the one that the wake has requested
	default:
	}
	turn := s.Session.Feed(s.worker, in, nil)
	return in[turn.Consumed:], append(out, turn.Whole()...), turn.Next
}

// Woken reports whether the session has been woken.
func (s *Session) Woken() bool { return len(s.peer.wake) > 0 }

// Aborted reports whether the session has aborted the connection.
func (s *Session) Aborted() bool { return s.peer.aborted.Load() }

// peer is the peer of a session without a transport. It ignores most calls.
type peer struct {
	wake    chan struct{} // has a buffer of one, so that several wakes before a Feed count as one
	aborted atomic.Bool
}

func (p *peer) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *peer) Abort() { p.aborted.Store(true) }

func (*peer) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (*peer) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }

func (*peer) Held() (input, output int64) { return 0, 0 }
