//go:build real && unix

package limit_test

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clients/go/limit"
)

// program is a server on a Unix socket.
type program struct {
	t           *testing.T
	bin, socket string
	cmd         *exec.Cmd
	ended       chan struct{}
}

// start builds a server and starts it.
func start(t *testing.T) *program {
	t.Helper()
	dir := t.TempDir()
	p := &program{t: t, bin: filepath.Join(dir, "cellserver"), socket: filepath.Join(dir, "s")}
	out, err := exec.Command("go", "-C", "../../..", "build", "-o", p.bin, "./cmd/cellserver").CombinedOutput()
	require.NoError(t, err, "%s", out)
	p.run()
	t.Cleanup(p.kill)
	return p
}

// run starts the server, with the policy api, and waits until it answers.
func (p *program) run() {
	p.cmd = exec.Command(p.bin, "--port", "0", "--unixsocket", p.socket, "--dir", filepath.Dir(p.socket))
	require.NoError(p.t, p.cmd.Start())
	p.ended = make(chan struct{})
	go func(c *exec.Cmd, ended chan struct{}) {
		_ = c.Wait() // it is killed
		close(ended)
	}(p.cmd, p.ended)
	admin := redis.NewClient(&redis.Options{Network: "unix", Addr: p.socket, MaxRetries: -1})
	defer admin.Close() //nolint:errcheck // nothing is under way
	require.Eventually(p.t, func() bool {
		return admin.Do(context.Background(), "RL.POLICY", "SET", "api", "LIMITS", "TB", "100", "1", "3600").Err() == nil
	}, time.Minute, 10*time.Millisecond)
}

func (p *program) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// stop stops the server and returns when all of its threads stand still. Until then it could answer a call.
func (p *program) stop() {
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	_, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
	require.NoError(p.t, err)
	require.True(p.t, status.Stopped())
}

// resume lets the server that stop has stopped go on.
func (p *program) resume() { require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGCONT)) }

// connect returns a limiter for a socket, and the reasons of its last decision.
func connect(t *testing.T, socket string, o limit.Options) (*limit.Limiter, *atomic.Value) {
	t.Helper()
	reason := &atomic.Value{}
	o.URL, o.Policy, o.Log = "unix://"+socket, "api", slog.New(slog.DiscardHandler)
	o.Observe = func(e limit.Event) { reason.Store(e.Reason) }
	l, err := limit.New(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l, reason
}

// longest is how long a call may take on a machine that is busy; a call that waits for the server would take for ever.
const longest = 20 * time.Second

// TestProgram runs all drills against one server.
func TestProgram(t *testing.T) {
	p := start(t)
	t.Run("the program of the README", func(t *testing.T) { testExample(t, p) })
	t.Run("outages", func(t *testing.T) { testOutages(t, p) })
	t.Run("exactly the limit", func(t *testing.T) { testExactlyTheLimit(t, p) })
	t.Run("lost replies", func(t *testing.T) { testLostReplies(t, p) })
}

// testOutages: whatever happens to the server, each call is decided as the limiter was told, without a call after five
// failures, and the server decides again when it is back.
func testOutages(t *testing.T, p *program) {
	outages := map[string][2]func(){
		"killed":  {p.kill, p.run},
		"stopped": {p.stop, p.resume},
	}
	for name, outage := range outages {
		for mode, source := range map[limit.OnUnavailable]limit.Source{limit.Allow: limit.Unavailable, limit.Deny: limit.Unavailable, limit.Local: limit.InProcess} {
			l, reason := connect(t, p.socket, limit.Options{OnUnavailable: mode, Instances: func() int { return 50 }, Deadline: 300 * time.Millisecond})
			answered := func() bool {
				r, err := l.Take(t.Context(), limit.Call{Key: "look"})
				return err == nil && r.Source == limit.Server
			}
			require.Eventually(t, answered, time.Minute, 10*time.Millisecond)
			before := runtime.NumGoroutine()

			outage[0]()
			passed := 0
			for i := range 10 {
				began := time.Now()
				r, err := l.Allow(t.Context(), "ann")
				require.NoError(t, err)
				require.Less(t, time.Since(began), longest)
				require.Equal(t, source, r.Source, "%s: call %d", name, i)
				if r.Allowed {
					passed++
				}
			}
			require.Equal(t, map[limit.OnUnavailable]int{limit.Allow: 10, limit.Deny: 0, limit.Local: 2}[mode], passed, name)
			require.Eventually(t, func() bool {
				_, err := l.Allow(t.Context(), "ann")
				return err == nil && reason.Load() == "open"
			}, time.Minute, time.Millisecond, "the breaker is open")

			outage[1]()
			require.Eventually(t, answered, time.Minute, 10*time.Millisecond, name)
			require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+1 }, time.Minute, 10*time.Millisecond, "no goroutine is left")
		}
	}
}

// testExactlyTheLimit: two instances with 64 callers each get what one would.
func testExactlyTheLimit(t *testing.T, p *program) {
	var passed, failed atomic.Int64
	var callers sync.WaitGroup
	for range 2 {
		l, _ := connect(t, p.socket, limit.Options{OnUnavailable: limit.Deny, Deadline: limit.MaxDeadline})
		for range 64 {
			callers.Go(func() {
				for range 5 {
					r, err := l.Allow(t.Context(), "hot")
					switch {
					case err != nil || r.Source == limit.Unavailable:
						failed.Add(1)
					case r.Allowed:
						passed.Add(1)
					}
				}
			})
		}
	}
	callers.Wait()
	if failed.Load() == 0 { // otherwise a reply was late, and its unit is lost
		require.EqualValues(t, 100, passed.Load())
	}
	require.LessOrEqual(t, passed.Load(), int64(100))
}

// testLostReplies: a proxy loses one reply in ten. The limit is never exceeded, and calls with ID are not charged twice.
func testLostReplies(t *testing.T, p *program) {
	lossy := filepath.Join(t.TempDir(), "p")
	listener, err := net.Listen("unix", lossy)
	require.NoError(t, err)
	var links sync.WaitGroup
	links.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			links.Go(func() { lose(client, p.socket) })
		}
	})
	defer links.Wait()
	defer listener.Close() // it ends the loop above

	var l *limit.Limiter
	require.Eventually(t, func() bool { // the connection may be lost, too
		l, err = limit.New(t.Context(), limit.Options{
			URL: "unix://" + lossy, Policy: "api", OnUnavailable: limit.Deny, RandomID: true, Deadline: 100 * time.Millisecond, DenialCache: -1,
			Log: slog.New(slog.DiscardHandler),
		})
		return err == nil
	}, time.Minute, time.Millisecond)
	passed, sources := int64(0), map[limit.Source]int{}
	for range 200 {
		r, err := l.Allow(t.Context(), "lost")
		require.NoError(t, err)
		sources[r.Source]++
		if r.Allowed {
			passed++
		}
	}
	require.NoError(t, l.Close())
	require.Positive(t, sources[limit.Server], "%v", sources)

	direct, _ := connect(t, p.socket, limit.Options{OnUnavailable: limit.Deny, Deadline: limit.MaxDeadline})
	var look limit.Result
	require.Eventually(t, func() bool {
		look, err = direct.Take(t.Context(), limit.Call{Key: "lost"})
		return err == nil && look.Source == limit.Server
	}, time.Minute, time.Millisecond)
	charged := look.Limit - look.Remaining
	require.LessOrEqual(t, passed, charged)
	require.LessOrEqual(t, charged, int64(100))
	require.LessOrEqual(t, charged, passed+int64(sources[limit.Unavailable]), "each call was charged once at most")
}

// lose copies between a client and the server, and loses one packet of replies in ten.
func lose(client net.Conn, socket string) {
	defer client.Close()
	server, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(server, client) // it ends when the client closes
		_ = server.Close()
	})
	defer up.Wait()
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		if rand.IntN(10) == 0 {
			continue
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}
