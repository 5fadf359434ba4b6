//go:build real && unix

package transport_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/epoll"
	"github.com/cellserver/cellserver/transport/goroutine"
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

// Some figures only mean something if the server has a process of its own. These variables make
// this program that server. They are the kind of transport, the number of loops, the port, and the
// number of file descriptors (0: the present limit).
const (
	childKind  = "TRANSPORT_CHILD_KIND"
	childLoops = "TRANSPORT_CHILD_LOOPS"
	childPort  = "TRANSPORT_CHILD_PORT"
	childFiles = "TRANSPORT_CHILD_FILES"
)

// figures are the figures that a child reports about itself.
type figures struct {
	connections, acceptErrs int64
	cpu                     time.Duration
	memory                  int64 // heap and stacks in use, without garbage
}

// child runs the server if this process should be one. It prints its figures for every line on its
// input.
func child() bool {
	kind := os.Getenv(childKind)
	if kind == "" {
		return false
	}
	var loops, files int
	_, err := fmt.Sscan(os.Getenv(childLoops)+" "+os.Getenv(childFiles), &loops, &files)
	must(err)
	runtime.GOMAXPROCS(loops + 1)
	var tr transport.Transport
	if transport.Kind(kind).Resolve() == transport.KindEpoll {
		tr, err = epoll.New(ponger{}, transport.DefaultLimits(), loops, transporttest.Quiet, time.Now)
		must(err)
	} else {
		tr = goroutine.New(ponger{}, transport.DefaultLimits(), transporttest.Quiet, time.Now)
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv(childPort))
	must(err)
	go func() { must(tr.Serve(l)) }()
	if files > 0 {
		must(unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(files), Max: uint64(files)}))
	}
	fmt.Println(l.Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var u unix.Rusage
		must(unix.Getrusage(unix.RUSAGE_SELF, &u))
		var m runtime.MemStats
		if in.Text() == "memory" {
			runtime.GC()
			runtime.GC() // the second collection empties the pools
			runtime.ReadMemStats(&m)
		}
		s := tr.Stats()
		fmt.Println(s.Connections, s.AcceptErrs, u.Utime.Nano()+u.Stime.Nano(), m.HeapAlloc+m.StackInuse)
	}
	return true
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// ponger replies to every line with +PONG, so that only the transport costs time. It implements
// enough of Redis for redis-benchmark -t ping_inline.
type ponger struct{}

type pongSession struct{}

func (ponger) NewWorker() transport.Worker                      { return nil }
func (ponger) Open(transport.Peer) (transport.Session, []byte)  { return pongSession{}, nil }
func (ponger) Durable(uint64, transport.Peer) transport.Outcome { return transport.Kept }
func (pongSession) Closed()                                     {}
func (pongSession) Feed(_ transport.Worker, in, out []byte) transport.Turn {
	t := transport.Turn{Out: out}
	for {
		end := bytes.IndexByte(in[t.Consumed:], '\n')
		if end < 0 {
			return t
		}
		t.Consumed += end + 1
		t.Out = append(t.Out, "+PONG\r\n"...)
	}
}

// server is a child process from the parent's view.
type server struct {
	t       testing.TB
	in      io.Writer
	out     *bufio.Reader
	address string
}

// spawn starts a child, which ends with the test.
func spawn(t testing.TB, kind transport.Kind, loops, files int) *server {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childKind+"="+string(kind),
		fmt.Sprint(childLoops, "=", loops), fmt.Sprint(childFiles, "=", files))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		stdin.Close()
		require.NoError(t, cmd.Wait())
	})
	s := &server{t: t, in: stdin, out: bufio.NewReader(stdout)}
	line, err := s.out.ReadString('\n')
	require.NoError(t, err)
	s.address = strings.TrimSpace(line)
	return s
}

// ask returns the figures of the child. It returns the memory only if what asks for it.
func (s *server) ask(what string) (f figures) {
	s.t.Helper()
	_, err := fmt.Fprintln(s.in, what)
	require.NoError(s.t, err)
	_, err = fmt.Fscanln(s.out, &f.connections, &f.acceptErrs, &f.cpu, &f.memory)
	require.NoError(s.t, err)
	return f
}

func (s *server) dial() *transporttest.Client {
	s.t.Helper()
	nc, err := net.Dial("tcp", s.address)
	require.NoError(s.t, err)
	require.NoError(s.t, nc.SetDeadline(time.Now().Add(transporttest.Patience)))
	s.t.Cleanup(func() { nc.Close() })
	return &transporttest.Client{T: s.t, Conn: nc, Reader: bufio.NewReader(nc)}
}
