//go:build unix

package listen

import (
	"errors"
	"net"
	"syscall"
)

// setBacklog sets to n the maximum number of connections to l that wait in the kernel until they
// are accepted. By itself Go requests as many as the operating system permits.
func setBacklog(l *net.TCPListener, n int) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var refused error
	err = raw.Control(func(fd uintptr) { refused = syscall.Listen(int(fd), n) })
	return errors.Join(err, refused)
}

// checkListens returns an error if descriptor is not a listening socket. Without this check the
// server would serve a connected or datagram socket, on which every accept fails.
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

// withUmask runs f with a umask that permits the use of new files only to their owner. The umask is
// that of the process, so it also affects files that other goroutines create meanwhile.
func withUmask(f func() error) error {
	old := syscall.Umask(0o177)
	defer syscall.Umask(old)
	return f()
}
