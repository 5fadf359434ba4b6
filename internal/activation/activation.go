// Package activation starts programs with sockets that already listen, as systemd does
// (sd_listen_fds). So a test knows the address of a program before the program runs, no other
// process can take the address, and a client that connects early waits. The package needs a shell.
// Programs that cannot inherit sockets get ports of package freeport.
package activation

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Socket is a listening socket on a loopback address. It is closed at the end of the test, or by
// Close when no further program will get it. Programs that have been started with it keep it open
// until they end.
type Socket struct {
	// Name is the option of the program whose listener the socket replaces, such as "port".
	Name string
	// Addr is the host and the port of the socket.
	Addr string
	file *os.File
}

// Open opens a socket that a program will serve in place of a listener for the option name. The
// socket is closed at the end of the test.
func Open(tb testing.TB, name string) *Socket {
	tb.Helper()
	s, err := Listen(name)
	require.NoError(tb, err)
	tb.Cleanup(s.Close)
	return s
}

// Listen does the same as Open for a socket that the caller closes.
func Listen(name string) (*Socket, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		return nil, fmt.Errorf("the socket of %s: %w", name, err)
	}
	return &Socket{Name: name, Addr: l.Addr().String(), file: f}, nil
}

// Port returns the port of the socket.
func (s *Socket) Port() string {
	_, port, _ := net.SplitHostPort(s.Addr)
	return port
}

// Close closes the socket in this process. It may be called more than once.
func (s *Socket) Close() { _ = s.file.Close() } // only a second call returns an error

// Give changes cmd, which must not be started yet, so that its program inherits the sockets. If
// cmd.Env is nil, the program gets the environment of this process.
func Give(cmd *exec.Cmd, sockets ...*Socket) {
	names := make([]string, len(sockets))
	for i, s := range sockets {
		names[i] = s.Name
		cmd.ExtraFiles = append(cmd.ExtraFiles, s.file)
	}
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, fmt.Sprint("LISTEN_FDS=", len(sockets)), "LISTEN_FDNAMES="+strings.Join(names, ":"))
	// The program must get its own process ID, which is not known before it is started. Therefore a
	// shell sets the variable and executes the program in the same process.
	cmd.Args = append([]string{"sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path, cmd.Err = "/bin/sh", nil
}
