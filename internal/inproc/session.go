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

// Session is a connection without a socket.
type Session struct {
	server  *Server
	session transport.Session
	worker  transport.Worker
	peer    *peer
	out     []byte
}

// Feed creates a server without sockets and a session on it. Close ends both.
func Feed(start limit.Instant, options ...string) (*Session, error) {
	// This transport has no cost while no client connects.
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

// loopback is the default address of clients without sockets.
var loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}

// Open opens a session as if a client had connected from that address. If the server refuses it,
// Open returns the error reply.
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

// errClosed is the error for input after which the server has closed the session.
var errClosed = errors.New("the server closed the session")

// Do feeds a command and returns the reply, which is valid until the next call. It waits for a
// command that runs in the background.
func (s *Session) Do(args ...string) ([]byte, error) { return s.Send(Encode(nil, args...)) }

// Send is Do for several commands that arrive at once.
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

// Value is Do for a command with one reply, which it parses.
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

// peer is the peer of a session without a transport.
type peer struct {
	from net.Addr
	wake chan struct{} // has a buffer of one: further wakes before a Feed have no effect
}

// NewPeer returns the peer for a session that a test opens itself. It ignores all calls.
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
