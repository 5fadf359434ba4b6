//go:build real && unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/programs"
)

// asServer is set in the environment of a test binary that should be the server.
const asServer = "CELLSERVER_TEST_IS_THE_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" || os.Getenv(readyVariable) != "" {
		_ = os.Unsetenv(asServer) // otherwise the server would take it for an option
		os.Exit(run(os.Args[1:], nil, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// process is a process of the program that serves a Unix socket.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	pid    int
	socket string
}

// launch starts the program on dir, with a prefix such as strace.
func launch(t testing.TB, dir string, prefix []string, flags ...string) *process {
	p := &process{t: t, socket: filepath.Join(dir, "socket")}
	_ = os.Remove(p.socket) // the last process may have been killed
	args := append(prefix, os.Args[0], "--port", "0", "--unixsocket", p.socket, "--dir", dir, "--appendonly", "yes", "--logfile", filepath.Join(dir, "log"))
	args = append(args, flags...)
	p.cmd = exec.Command(args[0], args[1:]...)
	p.cmd.Env = append(os.Environ(), asServer+"=1")
	p.cmd.Stderr = os.Stderr
	require.NoError(t, p.cmd.Start())
	t.Cleanup(p.kill)
	require.Eventually(t, func() bool {
		c, err := net.Dial("unix", p.socket)
		if err != nil {
			return false
		}
		defer c.Close()
		line, err := ask(bufio.NewReader(c), c, "INFO")
		if err != nil || !strings.Contains(line, "\nloading:0") {
			return false
		}
		_, after, _ := strings.Cut(line, "process_id:")
		p.pid, _ = strconv.Atoi(strings.TrimSpace(strings.SplitN(after, "\n", 2)[0]))
		return p.pid > 0
	}, patience, 5*time.Millisecond)
	return p
}

// kill sends SIGKILL to the program itself.
func (p *process) kill() {
	if p.pid > 0 {
		_ = syscall.Kill(p.pid, syscall.SIGKILL) // it may have ended
		_ = p.cmd.Wait()                         // it returns an error, because the process was killed
		p.pid = 0
	}
}

// ask sends a command and returns its reply: an array as its elements separated by spaces, an error
// unchanged.
func ask(r *bufio.Reader, c net.Conn, words string) (string, error) {
	if _, err := c.Write([]byte(words + "\r\n")); err != nil {
		return "", err
	}
	return reply(r)
}

func reply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSpace(line)
	switch line[0] {
	case '*':
		n, _ := strconv.Atoi(line[1:])
		var parts []string
		for range n {
			part, err := reply(r)
			if err != nil {
				return "", err
			}
			parts = append(parts, part)
		}
		return strings.Join(parts, " "), nil
	case '$':
		n, _ := strconv.Atoi(line[1:])
		if n < 0 {
			return "nil", nil
		}
		b := make([]byte, n+2)
		for at := 0; at < len(b); {
			got, err := r.Read(b[at:])
			if err != nil {
				return "", err
			}
			at += got
		}
		return string(b[:n]), nil
	case ':', '+':
		return line[1:], nil
	}
	return line, nil
}

// burst is a limit that does not refill during a test.
const burst = 1_000_000_000

// consumed returns how much of key's limit is used up.
func consumed(t *testing.T, socket, key string) int {
	c, err := net.Dial("unix", socket)
	require.NoError(t, err)
	defer c.Close()
	got, err := ask(bufio.NewReader(c), c, fmt.Sprintf("CL.THROTTLE %s %d 1 1000 0", key, burst))
	require.NoError(t, err)
	fields := strings.Fields(got)
	require.Len(t, fields, 5, got)
	left, err := strconv.Atoi(fields[2])
	require.NoError(t, err)
	return burst + 1 - left
}

// hammer consumes units of its own key until the server is gone. It returns how many calls were
// allowed, and how many have an unknown outcome.
func hammer(socket, key string) (acked, unknown int) {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return 0, 0
	}
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		got, err := ask(r, c, fmt.Sprintf("CL.THROTTLE %s %d 1 1000", key, burst))
		if err != nil || !strings.HasPrefix(got, "0 ") {
			return acked, 1
		}
		acked++
	}
}

// ledger holds the total number of allowed calls of clients with a key each, and the number of
// further calls that may have taken effect.
type ledger struct{ acked, unknown [4]int }

// audit checks that a restarted server has all acknowledged effects, and none that was not
// requested.
func (l *ledger) audit(t *testing.T, socket string, round int) {
	t.Helper()
	for w := range l.acked {
		got := consumed(t, socket, fmt.Sprint("key", w))
		require.GreaterOrEqual(t, got, l.acked[w], "round %d", round)
		require.LessOrEqual(t, got, l.acked[w]+l.unknown[w], "round %d: what was never asked for", round)
		l.acked[w], l.unknown[w] = got, 0
	}
}

// consume makes every client consume until the server is gone. The results are in the ledger after
// a call of wait.
func (l *ledger) consume(socket string, consume func(socket, key string) (acked, unknown int)) (wait func()) {
	var busy sync.WaitGroup
	for w := range l.acked {
		busy.Go(func() {
			acked, unknown := consume(socket, fmt.Sprint("key", w))
			l.acked[w], l.unknown[w] = l.acked[w]+acked, unknown
		})
	}
	return busy.Wait
}

// total returns the number of acknowledged calls.
func (l *ledger) total() (n int) {
	for _, acked := range l.acked {
		n += acked
	}
	return n
}

// TestKilledServersLoseNothing: killed at any moment, under either policy, with the disk at its
// usual speed or stalled, the program has after a restart all acknowledged effects.
func TestKilledServersLoseNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it needs Unix sockets, signals and, for half of it, strace")
	}
	programs.Need(t, "strace")
	// Without the permission to trace, only the rounds without tracing mean anything.
	traced := exec.Command("strace", "-o", "/dev/null", "true").Run() == nil
	rounds := 28
	if testing.Short() {
		rounds = 4
	}
	dir := t.TempDir()
	var book ledger
	for round := range rounds {
		policy := []string{"everysec", "always"}[round%2]
		var prefix []string
		if traced && round%4 >= 2 {
			prefix = []string{"strace", "-f", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", "inject=fdatasync:delay_enter=150000"}
		}
		p := launch(t, dir, prefix, "--appendfsync", policy)
		book.audit(t, p.socket, round)
		wait := book.consume(p.socket, hammer)
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(20+37*round%300)*time.Millisecond)
		<-ctx.Done() // a different moment in each round
		cancel()
		if round%3 == 0 {
			c, err := net.Dial("unix", p.socket)
			require.NoError(t, err)
			_, err = ask(bufio.NewReader(c), c, "BGREWRITEAOF")
			require.NoError(t, err)
			_ = c.Close() // it has replied
		}
		p.kill()
		wait()
	}
	require.Positive(t, book.total())
	t.Logf("%d kills, %d acknowledged calls, 0 lost (strace %t)", rounds, book.total(), traced)
}

// TestFullDisk: on a full disk a call that cannot be persisted is refused, as are all calls with an
// effect, while PING, INFO and peeks get replies. Once there is space, everything works again
// without intervention, and no acknowledged effect is lost.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if runtime.GOOS != "linux" || exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", dir).Run() != nil {
		t.Skip("mounting a small file system takes rights that this process lacks")
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	p := launch(t, dir, nil, "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0")
	ballast := filepath.Join(dir, "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 700<<10), 0o600))
	c, err := net.Dial("unix", p.socket)
	require.NoError(t, err)
	defer c.Close()
	r := bufio.NewReader(c)
	charge := fmt.Sprintf("CL.THROTTLE key %d 1 1000", burst)
	acked, got := 0, ""
	for acked < 1_000_000 {
		got, err = ask(r, c, charge)
		require.NoError(t, err)
		if !strings.HasPrefix(got, "0 ") {
			break
		}
		acked++
	}
	require.Equal(t, "-MISCONF Errors writing to the AOF file: No space left on device; the outcome of this command is unknown", got)
	got, err = ask(r, c, "DEL other")
	require.NoError(t, err)
	require.Contains(t, got, "-MISCONF")
	got, err = ask(r, c, "PING")
	require.NoError(t, err)
	require.Equal(t, "PONG", got)
	got, err = ask(r, c, charge+" 0")
	require.NoError(t, err)
	require.Len(t, strings.Fields(got), 5)
	got, err = ask(r, c, "INFO persistence")
	require.NoError(t, err)
	require.Contains(t, got, "aof_last_write_status:err")

	freed := time.Now()
	require.NoError(t, os.Remove(ballast))
	require.Eventually(t, func() bool {
		got, err = ask(r, c, charge)
		return err == nil && strings.HasPrefix(got, "0 ")
	}, patience, 10*time.Millisecond)
	t.Logf("%d acknowledged before, back after %v", acked, time.Since(freed))
	acked++
	p.kill()
	p = launch(t, dir, nil)
	require.GreaterOrEqual(t, consumed(t, p.socket, "key"), acked)
	require.LessOrEqual(t, consumed(t, p.socket, "key"), acked+1, "only the call that was refused may count as well")
}

// TestTwoServersOnOneDirectory: a second program on the same directory does not start.
func TestTwoServersOnOneDirectory(t *testing.T) {
	dir := t.TempDir()
	launch(t, dir, nil)
	second := exec.Command(os.Args[0], "--port", "0", "--dir", dir, "--appendonly", "yes")
	second.Env = append(os.Environ(), asServer+"=1")
	out, err := second.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, string(out))
	require.Contains(t, string(out), "another process uses this directory")
}
