// Package direct is the transport of clients within this process, such as the ports of other protocols. A [Conn]
// is such a client: it has a session like any client with a socket, so users, pauses, the log, replicas, SLOWLOG and
// CLIENT LIST hold for its commands without further code.
package direct

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/internal/base"
)

// ErrClosed is the error of a call whose connection is closed, or closes before all replies have come.
var ErrClosed = errors.New("direct: the connection is closed")

// ErrReplies is the error of a call whose commands do not have as many replies as the caller has said. The connection
// is closed then.
var ErrReplies = errors.New("direct: the replies do not match the commands")

// ErrUser is the error of a call of a client that has not logged in.
var ErrUser = errors.New("direct: the client has not logged in")

// A Refusal is the error of Open if the handler refuses the connection. It is the text of the error reply without the
// first character.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// Origin describes a client within this process.
type Origin struct {
	// Remote and Local are the addresses of the two ends of the connection for which the client calls. Neither is nil.
	Remote, Local net.Addr
	// Library is the name of the protocol, which CLIENT LIST shows as lib-name.
	Library string
	// Gone, unless nil, is called once if the server closes the client, on a goroutine of its own. It is not called
	// because of [Conn.Close] and [Transport.Shutdown].
	Gone func()
	// Kept, unless nil, returns the number of bytes that the front keeps for the connection. They count as output of the
	// client. Any goroutine may call it.
	Kept func() int64
}

// Handler opens the sessions of clients within this process.
type Handler interface {
	transport.Handler
	// Admit does what Open does, for a client whose user is not known yet. The session is a [Session]. It refuses the
	// client only because there are too many.
	Admit(p transport.Peer) (transport.Session, []byte)
}

// Session is a [transport.Session] that can belong to a client within this process.
type Session interface {
	transport.Session
	// Introduce notes the name of the client's library. It is called once, before all other methods.
	Introduce(library string)
	// Touch notes that the client is active now, though it runs no command. Any goroutine may call it.
	Touch()
	// Enter logs the client in as the user called user. The error, which is for the client, says why it may not. Enter is
	// called until it succeeds, and then Feed.
	Enter(user string) error
}

// Transport connects clients within this process to the sessions of a handler. Any goroutine may call its methods.
type Transport struct {
	handler Handler
	workers base.Workers
	calls   sync.Pool // unused *call values; each transport has its own pool, because the channels of calls belong to one bubble of a test

	accepted atomic.Int64

	mu      sync.Mutex // mu guards the fields below
	stopped bool
	conns   map[*Conn]struct{}
	empty   chan struct{} // closed when the last connection is gone, after Shutdown has begun
	gone    transport.Stats
}

// New returns a transport without clients.
func New(h Handler) *Transport {
	return &Transport{
		handler: h,
		calls:   sync.Pool{New: func() any { return &call{turn: make(chan bool, 1)} }},
		conns:   make(map[*Conn]struct{}),
		empty:   make(chan struct{}),
	}
}

// Open opens a session for the client that o describes. Its calls begin after [Conn.Login]. The errors are a [Refusal] and,
// after Shutdown has begun or if the server closes the client at once, [ErrClosed].
func (t *Transport) Open(o Origin) (*Conn, error) {
	c := &Conn{t: t, o: o, wake: make(chan struct{}, 1), busy: true} // no other goroutine can use the session yet
	t.mu.Lock()
	if t.stopped {
		t.mu.Unlock()
		return nil, ErrClosed
	}
	t.conns[c] = struct{}{}
	t.mu.Unlock()
	session, rejection := t.handler.Admit(c)
	if session == nil {
		t.remove(c)
		return nil, refusal(rejection)
	}
	t.accepted.Add(1)
	c.session = session.(Session)
	c.session.Introduce(o.Library)
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.ended // Shutdown or Abort may have come meanwhile
	if c.next(); err != nil {
		return nil, err
	}
	return c, nil
}

// refusal returns the Go error for an error reply.
func refusal(reply []byte) error {
	if n := len(reply); n > len("-\r\n") && reply[0] == '-' {
		return Refusal(reply[1 : n-len("\r\n")])
	}
	return ErrClosed
}

// remove forgets c, whose session has ended.
func (t *Transport) remove(c *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, is := t.conns[c]; !is {
		return
	}
	delete(t.conns, c)
	c.moved.addTo(&t.gone)
	if t.stopped && len(t.conns) == 0 {
		close(t.empty)
	}
}

// Shutdown refuses further clients and calls, waits until the calls that run are finished, and ends all sessions. If ctx
// ends before, the calls get [ErrClosed], and Shutdown returns the error of ctx.
func (t *Transport) Shutdown(ctx context.Context) error {
	for _, c := range t.stop() {
		c.retire()
	}
	select {
	case <-t.empty:
		return nil
	case <-ctx.Done():
	}
	for _, c := range t.open() {
		c.Close()
	}
	<-t.empty
	return ctx.Err()
}

// stop refuses further clients, and returns those that are open.
func (t *Transport) stop() []*Conn {
	t.mu.Lock()
	if !t.stopped {
		t.stopped = true
		if len(t.conns) == 0 {
			close(t.empty)
		}
	}
	t.mu.Unlock()
	return t.open()
}

func (t *Transport) open() (all []*Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.conns {
		all = append(all, c)
	}
	return all
}

// Stats returns the sums of the counters of all connections. A Feed counts as a read and a write.
func (t *Transport) Stats() transport.Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.gone
	s.Connections, s.Accepted = int64(len(t.conns)), t.accepted.Load()
	for c := range t.conns {
		c.moved.addTo(&s)
		input, output := c.Held()
		s.Unread += input
		s.Pending += output
	}
	return s
}

func (m *traffic) addTo(s *transport.Stats) {
	feeds := m.feeds.Load()
	s.BytesIn += m.in.Load()
	s.BytesOut += m.out.Load()
	s.Reads += feeds
	s.Writes += feeds
}
