//go:build unix

package transport_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/cellserver/cellserver/transport"
)

// exhaustedKind, in the environment, makes this program a server of that kind that
// has hardly any file descriptors.
const exhaustedKind = "TRANSPORT_EXHAUSTED_KIND"

// exhausted runs that server if it is asked for. For every line on its input it
// prints the accept errors so far and the CPU time it has used.
func exhausted() bool {
	kind := os.Getenv(exhaustedKind)
	if kind == "" {
		return false
	}
	tr, err := transport.New(transport.Kind(kind), newLineHandler(), transport.DefaultLimits(), 2, quiet)
	must(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	go tr.Serve(l)
	must(unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 40, Max: 40}))
	fmt.Println(l.Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var u unix.Rusage
		must(unix.Getrusage(unix.RUSAGE_SELF, &u))
		fmt.Println(tr.Stats().AcceptErrs, u.Utime.Nano()+u.Stime.Nano())
	}
	return true
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestDescriptorsExhausted(t *testing.T) {
	for _, kind := range []transport.Kind{transport.KindGoroutine, transport.KindAuto} {
		t.Run(string(kind), func(t *testing.T) { testExhausted(t, kind) })
	}
}

// starved is a server that is out of descriptors, seen from outside.
type starved struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func (s *starved) ask() (acceptErrs int64, cpu time.Duration) {
	s.t.Helper()
	_, err := fmt.Fprintln(s.in)
	require.NoError(s.t, err)
	_, err = fmt.Fscanln(s.out, &acceptErrs, &cpu)
	require.NoError(s.t, err)
	return acceptErrs, cpu
}

func testExhausted(t *testing.T, kind transport.Kind) {
	self, err := os.Executable()
	require.NoError(t, err)
	child := exec.Command(self)
	child.Env = append(os.Environ(), exhaustedKind+"="+string(kind))
	child.Stderr = os.Stderr
	stdin, err := child.StdinPipe()
	require.NoError(t, err)
	stdout, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	t.Cleanup(func() {
		stdin.Close()
		require.NoError(t, child.Wait())
	})
	s := &starved{t: t, in: stdin, out: bufio.NewReader(stdout)}
	address, err := s.out.ReadString('\n')
	require.NoError(t, err)
	addr, err := net.ResolveTCPAddr("tcp", address[:len(address)-1])
	require.NoError(t, err)

	r := &rig{t: t, addr: addr}
	old := r.dial()
	old.send("echo 1")
	old.expect("1")
	var crowd []*client
	for range 60 { // the kernel takes them all, the server cannot
		crowd = append(crowd, r.dial())
	}
	r.eventually(func() bool { n, _ := s.ask(); return n > 0 })
	_, before := s.ask()
	watched := time.NewTimer(time.Second)
	served := 0
	for done := false; !done; {
		select {
		case <-watched.C:
			done = true
		case <-time.After(10 * time.Millisecond):
			old.send("echo still here")
			old.expect("still here")
			served++
		}
	}
	errs, after := s.ask()
	require.Positive(t, served)
	require.LessOrEqual(t, errs, int64(20)) // 5, 10, 20 … 1,000 ms apart
	require.LessOrEqual(t, after-before, 100*time.Millisecond)

	last := crowd[len(crowd)-1]
	for _, c := range crowd[:50] {
		require.NoError(t, c.Close())
	}
	last.send("echo 2")
	last.expect("2")
}
