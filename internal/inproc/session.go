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

// Session is one connection without a socket: bytes in, bytes out.
type Session struct {
	server  *Server
	session transport.Session
	worker  transport.Worker
	peer    *peer
	out     []byte
}

// Feed makes a server without sockets and a session on it. Close ends both.
func Feed(start limit.Instant, options ...string) (*Session, error) {
	// This transport costs nothing while no client connects.
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

// loopback is where the clients of sessions without sockets are, unless they say so.
var loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}

// Open opens a session as if a client connected from that address, or returns what
// the server tells those whom it refuses.
func (s *Server) Open(from net.Addr) (session *Session, rejection []byte) {
	p := &peer{from: from, wake: make(chan struct{}, 1)}
	opened, rejection := s.Engine().Open(p)
	if opened == nil {
		return nil, rejection
	}
	return &Session{server: s, session: opened, worker: s.Engine().NewWorker(), peer: p}, nil
}

// Server is what the session talks to.
func (s *Session) Server() *Server { return s.server }

// errClosed is returned for input that the server has closed the session over.
var errClosed = errors.New("the server closed the session")

// Do hands in a command and returns the reply, which is valid until the next call.
// A command that runs in the background is waited for.
func (s *Session) Do(args ...string) ([]byte, error) { return s.Send(Encode(nil, args...)) }

// Send is Do for commands that arrive at once.
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

// Value is Do for a command with one reply, which it reads.
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

// Close ends the session and its server.
func (s *Session) Close() {
	s.session.Closed()
	s.server.Engine().Close()
	s.server.Keyspace().Close()
}

// Encode appends a command as clients send it.
func Encode(b []byte, args ...string) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

// peer is the transport's end of a session that has no transport.
type peer struct {
	from net.Addr
	wake chan struct{} // holds one: a second wake before a Feed says nothing new
}

// NewPeer returns the transport's end of a session that a test opens itself. It ignores what it is
// told.
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
