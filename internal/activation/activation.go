// Package activation starts programs with sockets that listen already, as systemd does
// (sd_listen_fds). So a test knows the address of a program before there is one, no other process
// can take it, and a client that comes too early waits. It needs a shell. Programs that cannot
// inherit sockets get ports of freeport.
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

// Socket listens at a port of loopback. It is closed when the test ends, or when no further
// program is to be given it: from then on it lives as long as the programs that have it.
type Socket struct {
	// Name is the option in whose place the program serves the socket.
	Name string
	// Addr is host and port.
	Addr string
	file *os.File
}

// Open opens a socket. The option in whose place it will be served is name.
func Open(tb testing.TB, name string) *Socket {
	tb.Helper()
	s, err := Listen(name)
	require.NoError(tb, err)
	tb.Cleanup(s.Close)
	return s
}

// Listen is Open of a socket that the caller closes.
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

// Port is the port of the socket.
func (s *Socket) Port() string {
	_, port, _ := net.SplitHostPort(s.Addr)
	return port
}

// Close closes it here.
func (s *Socket) Close() { _ = s.file.Close() } // a second time is an error

// Give has a command that does not run yet start its program with sockets. Its environment is
// this process's, unless it has one.
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
	// A process learns its number when it runs: the shell passes its own on.
	cmd.Args = append([]string{"sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path, cmd.Err = "/bin/sh", nil
}
