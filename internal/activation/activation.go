// Package activation starts programs with sockets that already listen, as systemd does
// (sd_listen_fds). A test then knows the address of a program before the program runs, no other
// process can take the address, and an early client waits. The package needs a shell. Programs that
// cannot inherit sockets get ports of freeport.
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

// Socket is a listening loopback socket. It is closed when the test ends or, by Close, when no
// further program will get it: then it lives as long as the programs that have it.
type Socket struct {
	// Name is the option that the socket replaces.
	Name string
	// Addr is host and port.
	Addr string
	file *os.File
}

// Open opens a socket for a program to serve in place of the option name.
func Open(tb testing.TB, name string) *Socket {
	tb.Helper()
	s, err := Listen(name)
	require.NoError(tb, err)
	tb.Cleanup(s.Close)
	return s
}

// Listen is Open for a socket that the caller closes.
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

// Close closes the socket in this process.
func (s *Socket) Close() { _ = s.file.Close() } // a second call returns an error

// Give makes a command that does not run yet start its program with sockets. The program's
// environment is this process's, unless the command has one.
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
	// A process learns its ID only when it runs, so the shell passes its own on.
	cmd.Args = append([]string{"sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path, cmd.Err = "/bin/sh", nil
}
