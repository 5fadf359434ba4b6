package simnet

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"
)

// Buffer is the number of bytes that each direction of a connection buffers before a write waits.
// It corresponds to the buffers of two kernels.
const Buffer = 256 << 10

// backlog is the maximum number of connections that wait to be accepted by one listener.
const backlog = 511

// firstPort is the lowest port that clients, and listeners without a fixed port, get.
const firstPort = 32768

// link identifies a link by its two hosts. Bytes move in the direction from the first to the
// second.
type link struct{ from, to string }

// state has the settings of a link.
type state struct {
	delay func() time.Duration // function that returns the delay of the next bytes; nil if there is no delay
	held  bool
}

// Network connects hosts. Use New to create one.
type Network struct {
	mu        sync.Mutex // mu guards the fields below
	listeners map[string]*Listener
	links     map[link]*state
	conns     map[*Conn]struct{} // both ends of each connection that is open
	ports     int
	moved     chan struct{} // closed and then replaced when a link is released
}

// New returns a network without delays.
func New() *Network {
	return &Network{
		listeners: map[string]*Listener{}, links: map[link]*state{},
		conns: map[*Conn]struct{}{}, moved: make(chan struct{}),
	}
}

// Listen returns a listener for an address of host and port, such as 127.0.0.2:6379. Port 0 selects
// a free port.
func (n *Network) Listen(address string) (*Listener, error) {
	addr, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if addr.Port == 0 {
		addr.Port = n.port()
	}
	if n.listeners[addr.String()] != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: addr, Err: syscall.EADDRINUSE}
	}
	l := &Listener{n: n, addr: addr, queue: make(chan *Conn, backlog), done: make(chan struct{})}
	n.listeners[addr.String()] = l
	return l, nil
}

// port returns the next port for a client or a listener. The caller holds mu.
func (n *Network) port() int {
	n.ports++
	return firstPort + n.ports%(1<<15)
}

// Dial connects the host from to address. It waits while a link between the two hosts is held, and
// for their delays. It fails if ctx ends before, if no listener has the address, or if too many
// connections wait for the listener.
func (n *Network) Dial(ctx context.Context, from, address string) (net.Conn, error) {
	to, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	failed := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Addr: to, Err: err} }
	host := to.IP.String()
	for {
		n.mu.Lock()
		there, back := n.state(from, host), n.state(host, from)
		moved, trip := n.moved, there.wait()+back.wait()
		held := there.held || back.held
		n.mu.Unlock()
		if !held {
			if err := sleep(ctx, trip); err != nil {
				return nil, failed(err)
			}
			break
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, failed(ctx.Err())
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.listeners[to.String()]
	if l == nil {
		return nil, failed(syscall.ECONNREFUSED)
	}
	ours := &net.TCPAddr{IP: net.ParseIP(from), Port: n.port()}
	near, far := n.pair(ours, l.addr)
	select {
	case l.queue <- far:
		n.conns[near], n.conns[far] = struct{}{}, struct{}{}
		return near, nil
	default:
		return nil, failed(syscall.ECONNREFUSED)
	}
}

// sleep waits until d has passed or ctx ends. It returns the error of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pair creates both ends of a connection. The caller holds mu.
func (n *Network) pair(from, to *net.TCPAddr) (near, far *Conn) {
	there, back := newStream(n.state(from.IP.String(), to.IP.String())), newStream(n.state(to.IP.String(), from.IP.String()))
	near = &Conn{n: n, in: back, out: there, local: from, remote: to}
	far = &Conn{n: n, in: there, out: back, local: to, remote: from}
	return near, far
}

// state returns the state of the link between two hosts. The caller holds mu.
func (n *Network) state(from, to string) *state {
	l := link{from, to}
	if n.links[l] == nil {
		n.links[l] = &state{}
	}
	return n.links[l]
}

// wait returns the delay of bytes that are sent now.
func (s *state) wait() time.Duration {
	if s.delay == nil {
		return 0
	}
	return s.delay()
}

// Delay sets the delay of all bytes that the host from sends to the host called to. delay returns
// the delay of each write; nil means no delay. The network calls delay with a lock held, so delay
// must not use the network.
func (n *Network) Delay(from, to string, delay func() time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.state(from, to).delay = delay
	n.each(from, to, func(s *stream) { s.setDelay(delay) })
}

// Hold stops the link on which the host from sends to the host called to. Bytes that are written
// meanwhile arrive after Release.
func (n *Network) Hold(from, to string) { n.hold(from, to, true) }

// Release ends the effect of Hold. All bytes that were written meanwhile arrive now.
func (n *Network) Release(from, to string) { n.hold(from, to, false) }

func (n *Network) hold(from, to string, on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.state(from, to).held = on
	n.each(from, to, func(s *stream) { s.setHeld(on) })
	if !on {
		close(n.moved)
		n.moved = make(chan struct{})
	}
}

// Part holds both directions between two hosts, until Join.
func (n *Network) Part(a, b string) { n.Hold(a, b); n.Hold(b, a) }

// Join ends the effect of Part.
func (n *Network) Join(a, b string) { n.Release(a, b); n.Release(b, a) }

// each calls f for all open streams of a link, perhaps twice for the same stream. The caller holds
// mu.
func (n *Network) each(from, to string, f func(*stream)) {
	for c := range n.conns {
		local, remote := c.local.IP.String(), c.remote.IP.String()
		if local == from && remote == to {
			f(c.out)
		}
		if local == to && remote == from {
			f(c.in)
		}
	}
}

// Cut resets all connections between two hosts. Bytes in transit are lost.
func (n *Network) Cut(a, b string) {
	n.cut(func(c *Conn) bool { return c.local.IP.String() == a && c.remote.IP.String() == b })
}

// CutAfter resets each connection between two hosts after the first host has written the given
// number of further bytes. Those bytes arrive, and then the second host sees the reset.
func (n *Network) CutAfter(from, to string, bytes int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.each(from, to, func(s *stream) { s.setLeft(bytes) })
}

// Unplug resets all connections of host and closes its listeners, as when it loses power.
func (n *Network) Unplug(host string) {
	n.cut(func(c *Conn) bool { return c.local.IP.String() == host })
	n.mu.Lock()
	var ended []*Listener
	for _, l := range n.listeners {
		if l.addr.IP.String() == host {
			ended = append(ended, l)
		}
	}
	n.mu.Unlock()
	for _, l := range ended {
		_ = l.Close() // the error does not matter, because Close cannot fail
	}
}

func (n *Network) cut(which func(*Conn) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		if which(c) {
			c.in.reset()
			c.out.reset()
		}
	}
}

// Listener accepts connections to one address.
type Listener struct {
	n     *Network
	addr  *net.TCPAddr
	queue chan *Conn
	done  chan struct{}
	once  sync.Once
}

// Accept implements [net.Listener].
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case <-l.done:
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
	default:
	}
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
	}
}

// Close implements [net.Listener]. It resets connections that were not accepted.
func (l *Listener) Close() error {
	l.once.Do(func() {
		l.n.mu.Lock()
		delete(l.n.listeners, l.addr.String())
		l.n.mu.Unlock()
		close(l.done)
		for {
			select {
			case c := <-l.queue:
				c.in.reset()
				c.out.reset()
			default:
				return
			}
		}
	})
	return nil
}

// Addr implements [net.Listener].
func (l *Listener) Addr() net.Addr { return l.addr }
