package epoll

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cellserver/cellserver/transport"
)

// acceptor accepts connections of one listener as plain descriptors: Go's network poller waits for
// the listener, but does not manage the connections.
type acceptor struct {
	t      *Transport
	l      net.Listener
	tls    func() *tls.Config // the TLS configuration for new connections; nil without TLS
	dup    *os.File           // a duplicate of l's descriptor, on which Go's poller waits
	raw    syscall.RawConn
	closed atomic.Bool
	unix   *net.UnixAddr  // the address of l if it is a unix socket; nil for TCP
	local  netip.AddrPort // the address of a TCP listener; if it is unspecified, each connection is asked for its own

	// inherits says that connections inherit the TCP options of the listener. Otherwise open
	// sets the options of each connection. Connections of a multipath TCP listener, Go's default,
	// do not inherit them; with Nagle's algorithm on, a pushed message would wait 40 ms for an ACK.
	inherits atomic.Bool
}

// newAcceptor becomes the owner of l. If it fails, it closes l.
func newAcceptor(e *Transport, l net.Listener) (*acceptor, error) {
	a := &acceptor{t: e, l: l}
	if over, ok := l.(*transport.TLSListener); ok {
		l, a.tls = over.Listener, over.Config
	}
	var err error
	switch l := l.(type) {
	case *net.TCPListener:
		a.local = l.Addr().(*net.TCPAddr).AddrPort()
		a.dup, err = l.File()
	case *net.UnixListener:
		a.unix = l.Addr().(*net.UnixAddr)
		a.dup, err = l.File()
	default:
		err = fmt.Errorf("transport: epoll serves TCP and unix sockets, not %T", l)
	}
	if err == nil {
		a.raw, err = a.dup.SyscallConn()
	}
	if err == nil {
		err = a.setOptions(e.lim.Load().KeepAlive)
	}
	if err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// close closes the listener and its duplicate. An accept in progress, or the next one, returns
// net.ErrClosed.
func (a *acceptor) close() {
	a.closed.Store(true)
	_ = a.l.Close() // fails if the listener is closed already
	if a.dup != nil {
		_ = a.dup.Close() // fails if the duplicate is closed already
	}
}

// retired reports whether the listener has been closed. It returns false for a listener without a
// descriptor.
func (a *acceptor) retired() bool {
	l := a.l
	if over, ok := l.(*transport.TLSListener); ok {
		l = over.Listener
	}
	own, ok := l.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := own.SyscallConn()
	return err != nil || raw.Control(func(uintptr) {}) != nil
}

// accept waits for a connection, accepts it and opens its session. It does nothing and returns nil
// if the client has closed the connection meanwhile. After close it returns net.ErrClosed.
func (a *acceptor) accept() error {
	fd, sa, err := -1, unix.Sockaddr(nil), error(nil)
	rerr := a.raw.Read(func(lfd uintptr) bool {
		fd, sa, err = unix.Accept4(int(lfd), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		return !errors.Is(err, unix.EAGAIN)
	})
	switch {
	case rerr != nil && a.closed.Load(): // the poller has an error of its own for this, which is not net.ErrClosed
		return net.ErrClosed
	case rerr != nil:
		return rerr
	case errors.Is(err, unix.ECONNABORTED) || errors.Is(err, unix.EINTR):
		return nil // the connection is gone, but the next one may be there
	case err != nil:
		return fmt.Errorf("accept4: %w", err)
	}
	a.open(fd, sa)
	return nil
}

func (a *acceptor) open(fd int, sa unix.Sockaddr) {
	a.t.accepted.Add(1)
	c := &conn{fd: int32(fd), opened: int32(fd), unix: a.unix, slot: noSlot, watched: noSlot}
	if a.unix == nil {
		c.remote = addrPort(sa)
		c.local = a.localOf(fd)
		if !a.inherits.Load() {
			// A connection that is closed already refuses the options, and its first read reports
			// that.
			_ = setTCPOptions(fd, a.t.lim.Load().KeepAlive)
		}
	}
	if a.tls != nil {
		c.tls = &tlsConn{c: c}
	}
	session, rejection := a.t.h.Open(c)
	switch {
	case session == nil && c.tls != nil:
		_ = unix.Close(fd) // before the handshake the client could not read the reason
		return
	case session == nil:
	case c.tls != nil:
		c.session = session
		a.t.shakeHands(c, a.tls())
		return
	default:
		c.session = session
		a.t.assign(c)
		return
	}
	if len(rejection) > 0 {
		_, _ = unix.Write(fd, rejection) // the rejection fits into an empty socket buffer, unless the peer is gone
	}
	if unix.Shutdown(fd, unix.SHUT_WR) != nil || !c.beginLinger(a.t, a.t.lim.Load().Linger) {
		_ = unix.Close(fd) // the client has been promised nothing
		return
	}
	a.t.assign(c)
}

// localOf returns the local address of the connection fd: that of the listener, unless the listener
// accepts connections on all addresses. If the kernel does not tell the address, the result is that
// of the listener.
func (a *acceptor) localOf(fd int) netip.AddrPort {
	if !a.local.Addr().IsUnspecified() {
		return a.local
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return a.local
	}
	return addrPort(sa)
}

func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), uint16(sa.Port))
	default:
		return netip.AddrPort{}
	}
}

// setOptions sets the TCP options on the listener, so that connections inherit them, which saves
// five system calls per connection. It also sets a.inherits. It does nothing for a unix socket.
func (a *acceptor) setOptions(period time.Duration) error {
	if a.unix != nil {
		return nil
	}
	var failed error
	err := a.raw.Control(func(fd uintptr) {
		protocol, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PROTOCOL)
		a.inherits.Store(err == nil && protocol == unix.IPPROTO_TCP)
		failed = setTCPOptions(int(fd), period)
	})
	return errors.Join(err, failed)
}

// setTCPOptions turns Nagle's algorithm off and keep-alive on, as Redis does: the first probe after
// period, and two more each a third of it later. Both times are rounded down to seconds, and are at
// least one second. A period of 0 turns keep-alive off.
func setTCPOptions(fd int, period time.Duration) error {
	on := 0
	if period > 0 {
		on = 1
	}
	seconds := max(1, int(period/time.Second))
	for _, o := range []struct{ level, option, value int }{
		{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, on},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, seconds},
		{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, max(1, seconds/3)},
		{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3},
	} {
		if err := unix.SetsockoptInt(fd, o.level, o.option, o.value); err != nil {
			return fmt.Errorf("setsockopt %d: %w", o.option, err)
		}
	}
	return nil
}
