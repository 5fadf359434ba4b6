package inproc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/cellserver/cellserver/internal/script"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/transport"
)

// Session is a connection of a client without a socket. Close ends the session and its server.
type Session struct {
	server  *Server
	session transport.Session
	worker  transport.Worker
	peer    *peer
	out     []byte
}

// Feed creates a server without sockets and opens a session on it. The server's clock stands at
// start. Session.Close ends both. options are options of a command line.
func Feed(start limit.Instant, options ...string) (*Session, error) {
	// The transport has no cost, because it does nothing while no client connects.
	s, err := New(start, []net.Listener{}, append([]string{"--transport", "goroutine"}, options...)...)
	if err != nil {
		return nil, err
	}
	session, rejection := s.Open(loopback)
	if session == nil {
		return nil, fmt.Errorf("the server refused the session: %q", rejection)
	}
	return session, nil
}

// loopback is the address of clients without sockets if the test gives no other.
var loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}

// Open opens a session as if a client had connected from the address from. If the server refuses
// the session, Open returns nil and the error reply.
func (s *Server) Open(from net.Addr) (session *Session, rejection []byte) {
	p := &peer{from: from, wake: make(chan struct{}, 1)}
	opened, rejection := s.Engine().Open(p)
	if opened == nil {
		return nil, rejection
	}
	return &Session{server: s, session: opened, worker: s.Engine().NewWorker(), peer: p}, nil
}

// Server returns the server of the session.
func (s *Session) Server() *Server { return s.server }

// errClosed means that the server has closed the session.
var errClosed = errors.New("the server closed the session")

// Do feeds a command and returns the reply, which is valid until the next call. If the session
// parks, Do waits until it is woken.
func (s *Session) Do(args ...string) ([]byte, error) { return s.Send(Encode(nil, args...)) }

// Send feeds several commands that arrive at once, and returns the replies, which are valid until
// the next call. If the session parks, Send waits until it is woken.
func (s *Session) Send(in []byte) ([]byte, error) {
	s.out = s.out[:0]
	for {
		turn := s.session.Feed(s.worker, in, s.out)
		in, s.out = in[turn.Consumed:], turn.Whole()
		switch turn.Next {
		case transport.Again:
		case transport.Park, transport.Wait:
			<-s.peer.wake
		case transport.Close:
			return s.out, errClosed
		default:
			return s.out, nil
		}
	}
}

// Value feeds a command that has one reply, and returns the parsed reply.
func (s *Session) Value(args ...string) (script.Value, error) {
	out, err := s.Do(args...)
	if err != nil {
		return script.Value{}, fmt.Errorf("%q: %w", args, err)
	}
	in := bufio.NewReader(bytes.NewReader(out))
	v, err := script.ReadValue(in)
	if err != nil {
		return v, fmt.Errorf("%q answered %q: %w", args, out, err)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return v, fmt.Errorf("%q answered more than one reply: %q", args, out)
	}
	return v, nil
}

// Close ends the session and its server. It must not be called if other sessions of the server are
// in use.
func (s *Session) Close() {
	s.session.Closed()
	s.server.Engine().Close()
	s.server.Keyspace().Close()
}

// Encode appends a command, encoded as clients send it, to b and returns the extended slice.
func Encode(b []byte, args ...string) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

// peer is the peer of a session without a transport. It ignores most calls.
type peer struct {
	from net.Addr
	wake chan struct{} // has a buffer of one, so that several wakes before a Feed count as one
}

// NewPeer returns a peer for a session that a test opens itself. It ignores all calls.
func NewPeer() transport.Peer { return &peer{from: loopback, wake: make(chan struct{}, 1)} }

func (p *peer) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (*peer) Abort() {}

func (p *peer) RemoteAddr() net.Addr { return p.from }

func (*peer) Held() (input, output int64) { return 0, 0 }

func (*peer) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }
