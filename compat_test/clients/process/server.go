// Package process runs the server under test as a process of its own. A client in another language
// can only connect to a process, and the process can be restarted under that client.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cellserver/cellserver/internal/activation"
	"github.com/cellserver/cellserver/internal/freeport"
)

const (
	// readyWithin is the maximum time from the start of a server to its first PONG, and stopWithin
	// the maximum time from SIGTERM to its end.
	readyWithin = time.Minute
	stopWithin  = time.Minute
)

// Command returns the command line of the server under test, without the port and the address,
// which Start adds. It consists of the words of CELL_SERVER_CMD if that is set. Otherwise Command
// builds ./cmd/cellserver of the module at root into the folder out and returns its path.
func Command(root, out string) ([]string, error) {
	if words := strings.Fields(os.Getenv("CELL_SERVER_CMD")); len(words) > 0 {
		return words, nil
	}
	binary := filepath.Join(out, "cellserver")
	build := exec.Command("go", "build", "-o", binary, "./cmd/cellserver")
	build.Dir = root
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building ./cmd/cellserver: %w\n%s", err, text)
	}
	return []string{binary}, nil
}

// Server is a running server. Its methods must not be called concurrently, except for Output.
type Server struct {
	// Addr is the host and the port of the server. Restarts do not change it.
	Addr string

	command []string
	dir     string
	socket  *activation.Socket // the socket that the program inherits; nil if it cannot inherit one
	running *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	log     lockedBuffer
}

// Start starts command in the folder dir and waits until the server replies to PING. The server of
// CELL_SERVER_CMD gets a free port, and the server of this module inherits a listening socket.
func Start(command []string, dir string) (*Server, error) {
	if os.Getenv("CELL_SERVER_CMD") == "" {
		socket, err := activation.Listen("port")
		if err != nil {
			return nil, err
		}
		s := &Server{Addr: socket.Addr, command: command, dir: dir, socket: socket}
		if err := s.start(); err != nil {
			return nil, err
		}
		return s, nil
	}
	var err error
	for range 5 {
		// Another process may take the port after it was chosen.
		port := freeport.Choose()
		s := &Server{
			Addr:    net.JoinHostPort("127.0.0.1", port),
			command: append(command[:len(command):len(command)], "--port", port, "--bind", "127.0.0.1"),
			dir:     dir,
		}
		if err = s.start(); err == nil {
			return s, nil
		}
	}
	return nil, err
}

// Restart stops the server with SIGTERM and starts it again on the same address. By then all
// clients have lost their connections.
func (s *Server) Restart() error {
	if err := s.Stop(); err != nil {
		return err
	}
	return s.start()
}

// Stop sends SIGTERM and waits until the server has ended. It returns an error if the server has
// ended before, or if it does not end within stopWithin. In the second case Stop kills the server.
func (s *Server) Stop() error {
	select {
	case <-s.ended:
		return fmt.Errorf("the server had ended by itself: %s", s.running.ProcessState)
	default:
	}
	if err := s.running.Process.Signal(syscall.SIGTERM); err != nil {
		return errors.Join(err, s.running.Process.Kill())
	}
	select {
	case <-s.ended:
		return nil
	case <-time.After(stopWithin):
		err := fmt.Errorf("the server had to be killed %s after SIGTERM", stopWithin)
		return errors.Join(err, s.running.Process.Kill())
	}
}

// Output returns everything that the server has written to its standard output and error so far.
func (s *Server) Output() string { return s.log.String() }

func (s *Server) start() error {
	s.running = exec.Command(s.command[0], s.command[1:]...)
	s.running.Dir = s.dir
	if s.socket != nil {
		activation.Give(s.running, s.socket)
	}
	s.running.Stdout, s.running.Stderr = &s.log, &s.log
	if err := s.running.Start(); err != nil {
		return err
	}
	s.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		defer close(ended)
		_ = cmd.Wait() // ProcessState says how the process has ended
	}(s.running, s.ended)
	return s.awaitReady()
}

// awaitReady returns when the server replies to PING, which it does after it has loaded its files.
// It returns an error if the server ends, or if it does not reply within readyWithin; then it kills
// the server.
func (s *Server) awaitReady() error {
	deadline := time.After(readyWithin)
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	for {
		err := ping(s.Addr)
		if err == nil {
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("the server ended at once: %s\n%s", s.running.ProcessState, s.Output())
		case <-deadline:
			kill := s.running.Process.Kill()
			return errors.Join(fmt.Errorf("no PONG within %s: %w\n%s", readyWithin, err, s.Output()), kill)
		case <-retry.C:
		}
	}
}

func ping(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "*1\r\n$4\r\nPING\r\n"); err != nil {
		return err
	}
	answer := make([]byte, len("+PONG\r\n"))
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	if string(answer) != "+PONG\r\n" {
		return fmt.Errorf("PING was answered with %q", answer)
	}
	return nil
}

// lockedBuffer is a buffer to which a process writes while a test reads it.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
