//go:build unix

package listen

import (
	"errors"
	"net"
	"syscall"
)

// setBacklog sets to n the number of connections that the kernel keeps for l before they are
// accepted. Go itself requests as many as the system permits.
func setBacklog(l *net.TCPListener, n int) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var refused error
	err = raw.Control(func(fd uintptr) { refused = syscall.Listen(int(fd), n) })
	return errors.Join(err, refused)
}

// checkListens returns an error if descriptor is not a listening socket. Without this check a
// connected or datagram socket would be served, and fail at every accept.
func checkListens(descriptor int) error {
	on, err := syscall.GetsockoptInt(descriptor, syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN)
	if err != nil {
		return err
	}
	if on == 0 {
		return errors.New("the socket does not listen")
	}
	return nil
}

// withUmask runs f. Files that f creates can be used only by their owner. The umask is that of the
// process, so files that other goroutines create meanwhile are affected, too.
func withUmask(f func() error) error {
	old := syscall.Umask(0o177)
	defer syscall.Umask(old)
	return f()
}
