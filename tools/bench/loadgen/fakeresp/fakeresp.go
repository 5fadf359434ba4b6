// Package fakeresp is a server for tests of the load generator. It understands just enough of RESP,
// and replies what the test specifies.
package fakeresp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Handler returns the reply to a command as bytes, "" for none. The server calls it for one command
// at a time.
type Handler func(args []string) string

// Hangup is the result of a [Handler] that makes the server close the connection.
const Hangup = "\x00"

// Start runs a server at an address of a network, such as port 0 of loopback or a Unix socket,
// until the test ends, and returns its address.
func Start(t testing.TB, network, address string, handle Handler) string {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	Serve(t, l, handle)
	return l.Addr().String()
}

// Serve runs a server on a listener until the test ends. In a bubble of testing/synctest a handler
// may sleep: connections that wait for their turn let virtual time pass.
func Serve(t testing.TB, l net.Listener, handle Handler) {
	t.Helper()
	s := &server{handle: handle, turn: make(chan struct{}, 1), conns: make(map[net.Conn]bool)}
	s.wait.Go(func() { s.accept(l) })
	t.Cleanup(func() {
		l.Close()
		s.closeAll()
		s.wait.Wait()
	})
}

type server struct {
	wait   sync.WaitGroup
	handle Handler
	turn   chan struct{} // has an element while a command is being handled

	mu     sync.Mutex // mu guards the fields below
	conns  map[net.Conn]bool
	closed bool
}

func (s *server) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.closed {
			conn.Close()
		}
		s.conns[conn] = true
		s.mu.Unlock()
		s.wait.Go(func() { s.serve(conn) })
	}
}

func (s *server) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for conn := range s.conns {
		conn.Close()
	}
}

func (s *server) serve(conn net.Conn) {
	defer conn.Close()
	in, out := bufio.NewReader(conn), bufio.NewWriter(conn)
	for {
		args, err := readCommand(in)
		if err != nil {
			return
		}
		s.turn <- struct{}{}
		answer := s.handle(args)
		<-s.turn
		if answer == Hangup {
			return
		}
		if _, err := out.WriteString(answer); err != nil {
			return
		}
		if in.Buffered() == 0 && out.Flush() != nil {
			return
		}
	}
}

// readCommand reads an array of bulk strings.
func readCommand(r *bufio.Reader) ([]string, error) {
	n, err := readLength(r, '*')
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := readLength(r, '$')
		if err != nil {
			return nil, err
		}
		arg := make([]byte, size+2)
		if _, err := io.ReadFull(r, arg); err != nil {
			return nil, err
		}
		if string(arg[size:]) != "\r\n" {
			return nil, fmt.Errorf("%q is longer than it says", arg)
		}
		args[i] = string(arg[:size])
	}
	return args, nil
}

func readLength(r *bufio.Reader, kind byte) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, fmt.Errorf("%q is not a length", line)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// Five returns the reply of a limiter command: an array of five integers.
func Five(limited, limit, remaining, retry, reset int64) string {
	return fmt.Sprintf("*5\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n", limited, limit, remaining, retry, reset)
}
