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

// asServer is set in the environment of a test binary that is to be the server.
const asServer = "CELLSERVER_TEST_IS_THE_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" || os.Getenv(readyVariable) != "" {
		_ = os.Unsetenv(asServer) // or the server would take it for an option
		os.Exit(run(os.Args[1:], nil, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// process is the program in a process of its own, serving a Unix socket.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	pid    int
	socket string
}

// launch starts the program on dir, behind a prefix such as strace.
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

// kill is kill -9 of the program itself.
func (p *process) kill() {
	if p.pid > 0 {
		_ = syscall.Kill(p.pid, syscall.SIGKILL) // it may be gone
		_ = p.cmd.Wait()                         // it was killed, which is an error
		p.pid = 0
	}
}

// ask sends a command in words and returns its reply: an array as its elements with
// spaces between, an error as it is.
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

// burst is the size of a limit that does not refill while a test lasts.
const burst = 1_000_000_000

// consumed asks how much of key is used up.
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

// ledger has the total number of allowed calls of clients with a key each, and the number of
// further calls that may have taken effect.
type ledger struct{ acked, unknown [4]int }

// audit wants a server that was started again to have all that was acknowledged, and
// nothing that was never asked for.
func (l *ledger) audit(t *testing.T, socket string, round int) {
	t.Helper()
	for w := range l.acked {
		got := consumed(t, socket, fmt.Sprint("key", w))
		require.GreaterOrEqual(t, got, l.acked[w], "round %d", round)
		require.LessOrEqual(t, got, l.acked[w]+l.unknown[w], "round %d: what was never asked for", round)
		l.acked[w], l.unknown[w] = got, 0
	}
}

// consume has every client consume until the server is gone. What comes of it is in the
// ledger when the function that it returns has.
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

// total is how many calls were acknowledged.
func (l *ledger) total() (n int) {
	for _, acked := range l.acked {
		n += acked
	}
	return n
}

// Killed at any moment, under either policy, with the disk at its usual
// speed or stalled, the program has after a restart all that it acknowledged.
func TestKilledServersLoseNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it needs Unix sockets, signals and, for half of it, strace")
	}
	programs.Need(t, "strace")
	// Without the right to trace, only the half of the rounds that needs none means anything.
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
		<-ctx.Done() // a moment of the round's own
		cancel()
		if round%3 == 0 {
			c, err := net.Dial("unix", p.socket)
			require.NoError(t, err)
			_, err = ask(bufio.NewReader(c), c, "BGREWRITEAOF")
			require.NoError(t, err)
			_ = c.Close() // it has answered
		}
		p.kill()
		wait()
	}
	require.Positive(t, book.total())
	t.Logf("%d kills, %d acknowledged calls, 0 lost (strace %t)", rounds, book.total(), traced)
}

// On a full disk the call that cannot be kept is refused, as are all
// that would have an effect, while PING, INFO and peeks are answered; once there is
// room everything goes on by itself, and nothing acknowledged is lost.
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

// A second program on the same directory does not start.
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
