//go:build real

package docs_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/internal/inproc"
)

// awayBound is the time within which the fastest of a few calls has to decide without the server:
// twenty times the configured timeout. With a client's default timeouts each call would take
// seconds.
const awayBound = 20 * 50 * time.Millisecond

// TestProgramsSurviveAServerThatIsAway runs each program while its server answers, hangs,
// is killed, and comes back.
func TestProgramsSurviveAServerThatIsAway(t *testing.T) {
	if testing.Short() {
		t.Skip("programs in other languages are left to the full test run")
	}
	for _, file := range awayPrograms {
		language := strings.Split(file, "/")[1]
		t.Run(language, func(t *testing.T) {
			t.Run("from the beginning", func(t *testing.T) {
				f := newFront(t)
				f.hang()
				startAway(t, file, f.addr).decidesAlone(t, "hanging")
				f.kill()
				startAway(t, file, f.addr).decidesAlone(t, "a closed port")
			})
			t.Run("while it runs", func(t *testing.T) {
				f := newFront(t)
				p := startAway(t, file, f.addr)
				require.Equal(t, "allowed", p.answer(t, "closed"))
				require.Equal(t, "1", f.run.client(t, "").do(t, "exists", "EXISTS away:"+language), "the program uses another key")
				f.exhaust(t, "away:"+language)
				require.Equal(t, "refused", p.answer(t, "open"), "who fails open still does as the limiter says")
				f.do(t, "CONFIG SET min-replicas-to-write 1")
				p.decidesAlone(t, "an error that no limit is decided now")
				f.do(t, "CONFIG SET min-replicas-to-write 0")
				f.do(t, "DEL away:"+language)
				f.do(t, "RPUSH away:"+language+" x")
				require.Equal(t, "refused", p.answer(t, "open"), "an error that a key has caused")
				f.do(t, "DEL away:"+language)
				f.exhaust(t, "away:"+language)
				f.hang()
				p.decidesAlone(t, "hanging")
				f.back(t)
				require.Equal(t, "refused", p.answer(t, "open"), "it came back")
				f.kill()
				p.decidesAlone(t, "killed")
				f.back(t)
				require.Equal(t, "refused", p.answer(t, "open"), "it came back again")
			})
		})
	}
}

// awayProgram is a program that is running.
type awayProgram struct {
	in  io.Writer
	out *bufio.Scanner
	say *strings.Builder // its standard error
}

// startAway runs a program against an address.
func startAway(t *testing.T, file, addr string) *awayProgram {
	t.Helper()
	// A test's own context is over before what it cleans up.
	ctx, cancel := context.WithTimeout(context.Background(), programTime)
	command, environment := awayCommand(ctx, t, file)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(append(os.Environ(), environment...), "REDIS_URL=redis://"+addr, "PYTHONDONTWRITEBYTECODE=1")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	p := &awayProgram{in: in, out: bufio.NewScanner(out), say: &strings.Builder{}}
	cmd.Stderr = p.say
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		defer cancel()
		require.NoError(t, in.Close())
		_, err := io.Copy(io.Discard, out)
		require.NoError(t, err)
		require.NoError(t, cmd.Wait(), p.say.String())
		require.Empty(t, p.say.String(), "a server that is away is no reason to write lines")
	})
	return p
}

// ask has the program decide once, failing "open" or "closed".
func (p *awayProgram) ask(t *testing.T, fail string) (decision string, answered bool, took time.Duration) {
	t.Helper()
	_, err := fmt.Fprintln(p.in, fail)
	require.NoError(t, err)
	require.True(t, p.out.Scan(), "it has ended: %s", p.say)
	var by string
	var ms int
	_, err = fmt.Sscan(p.out.Text(), &decision, &by, &ms)
	require.NoError(t, err, p.out.Text())
	return decision, by == "answered", time.Duration(ms) * time.Millisecond
}

// answer asks until the server has decided, since a busy machine may be late and a
// client looks for a server that was away only now and then.
func (p *awayProgram) answer(t *testing.T, fail string) string {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(programTime / 4); time.Now().Before(end); <-again.C {
		if decision, answered, _ := p.ask(t, fail); answered {
			return decision
		}
	}
	require.Fail(t, "the server is there, and the program does not find it")
	return ""
}

// decidesAlone asks a few times each way: every decision has to be the one that was
// chosen for this case, and the quickest has to come soon.
func (p *awayProgram) decidesAlone(t *testing.T, why string) {
	t.Helper()
	for fail, want := range map[string]string{"open": "allowed", "closed": "refused"} {
		quickest := programTime
		for range 4 {
			decision, answered, took := p.ask(t, fail)
			require.False(t, answered, why)
			require.Equal(t, want, decision, "%s, failing %s", why, fail)
			quickest = min(quickest, took)
		}
		require.Less(t, quickest, awayBound, "%s, failing %s", why, fail)
	}
}

// awayCommand returns the command that runs a program, and what it needs in its
// environment.
func awayCommand(ctx context.Context, t *testing.T, file string) (command, environment []string) {
	t.Helper()
	source, err := filepath.Abs(filepath.Join("..", file))
	require.NoError(t, err)
	compat := filepath.Join("..", "compat_test")
	switch filepath.Ext(file) {
	case ".js":
		modules := filepath.Join(compat, "clients", "node", "node_modules")
		installed(t, filepath.Join(modules, ".installed"))
		library, err := filepath.Abs(filepath.Join(modules, "ioredis6"))
		require.NoError(t, err)
		found := t.TempDir()
		require.NoError(t, os.Symlink(library, filepath.Join(found, "ioredis")))
		return []string{"node", source}, []string{"NODE_PATH=" + found}
	case ".rb":
		installed(t, filepath.Join(compat, "libraries", "ruby", "target", ".installed"))
		return []string{"ruby", source}, nil
	case ".go":
		binary := filepath.Join(t.TempDir(), "program")
		out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, filepath.Dir(source)).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return []string{binary}, nil
	}
	return interpreter(t, file), nil
}

// front stands before a server, and is taken away as servers are.
type front struct {
	addr string
	run  *exampleRun

	mu       sync.Mutex
	listener net.Listener
	hangs    bool
	conns    map[net.Conn]bool // both ends of every relay, and what hangs
	running  sync.WaitGroup
}

func newFront(t *testing.T) *front {
	t.Helper()
	f := &front{
		addr:  net.JoinHostPort("127.0.0.1", freeport.Choose()), // it comes back there
		run:   &exampleRun{server: inproc.Start(t, midnight), clients: map[string]*exampleClient{}},
		conns: map[net.Conn]bool{},
	}
	f.back(t)
	t.Cleanup(func() {
		f.kill()
		f.running.Wait()
	})
	return f
}

// do runs a command on the server.
func (f *front) do(t *testing.T, words string) { f.run.client(t, "").do(t, words, words) }

// exhaust uses up all of a program's limit.
func (f *front) exhaust(t *testing.T, key string) {
	t.Helper()
	for {
		reply := f.run.client(t, "").do(t, key, "CL.THROTTLE "+key+" 15 30 60")
		if strings.HasPrefix(reply, "1 ") {
			return
		}
	}
}

// back begins to serve, at the same address as before.
func (f *front) back(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hangs = false
	if f.listener != nil {
		return
	}
	l, err := net.Listen("tcp", f.addr)
	require.NoError(t, err)
	f.listener, f.addr = l, l.Addr().String()
	f.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f.serve(c)
		}
	})
}

// serve relays a connection, or keeps it without ever answering.
func (f *front) serve(c net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns[c] = true
	if f.hangs {
		return
	}
	server, err := net.Dial("tcp", f.run.server.Addr().String())
	if err != nil {
		_ = c.Close()
		return
	}
	f.conns[server] = true
	f.running.Go(func() { f.relay(server, c) })
	f.running.Go(func() { f.relay(c, server) })
}

// relay copies until one end is closed or the front hangs: then what comes is lost.
func (f *front) relay(to, from net.Conn) {
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		f.mu.Lock()
		lost := !f.conns[from]
		f.mu.Unlock()
		switch {
		case lost:
		case err != nil:
			_ = to.Close()
		default:
			_, _ = to.Write(b[:n]) // if that fails, reading will
		}
		if err != nil {
			return
		}
	}
}

// hang leaves all connections open and answers none of them any more, for good: only
// connections that are made once it is back are served.
func (f *front) hang() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hangs = true
	for c := range f.conns {
		f.conns[c] = false
	}
}

// kill closes everything, as the kernel does for a process that is killed.
func (f *front) kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listener != nil {
		_ = f.listener.Close()
	}
	f.listener = nil
	for c := range f.conns {
		_ = c.Close()
	}
	clear(f.conns)
}
