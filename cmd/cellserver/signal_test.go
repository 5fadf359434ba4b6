//go:build real && unix

package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/activation"
)

// daemon is the program as an operator runs it, on a socket that the test has opened.
type daemon struct {
	*exec.Cmd
	t     testing.TB
	addr  string
	log   *syncBuffer
	ended chan struct{}
}

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// startDaemon starts the program and waits until it replies.
func startDaemon(t *testing.T, flags ...string) *daemon {
	t.Helper()
	p := newDaemon(t, exec.Command(os.Args[0], flags...))
	p.start()
	return p
}

// newDaemon returns the program that cmd starts. It serves sockets in place of port and of further
// options. Its log is kept, unless the caller changes that.
func newDaemon(t *testing.T, cmd *exec.Cmd, more ...string) *daemon {
	t.Helper()
	sockets := []*activation.Socket{activation.Open(t, "port")}
	for _, option := range more {
		sockets = append(sockets, activation.Open(t, option))
	}
	p := &daemon{Cmd: cmd, t: t, addr: sockets[0].Addr, log: &syncBuffer{}, ended: make(chan struct{})}
	p.Env = append(os.Environ(), asServer+"=1")
	p.Stderr = p.log
	activation.Give(p.Cmd, sockets...)
	return p
}

func (p *daemon) start() {
	p.t.Helper()
	require.NoError(p.t, p.Start())
	go func() {
		defer close(p.ended)
		_ = p.Wait() // the exit status is checked later
	}()
	p.t.Cleanup(func() { _ = p.Process.Kill() }) // most have ended by then
	c, r := p.dial()
	_, err := io.WriteString(c, "PING\r\n")
	require.NoError(p.t, err)
	_, err = r.ReadString('\n') // PONG, or an error that a password is required
	require.NoError(p.t, err, "%s", p.log)
	require.NoError(p.t, c.Close())
}

// status waits for the end and returns the exit status, -1 after a signal.
func (p *daemon) status() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.ProcessState.ExitCode()
	case <-time.After(patience):
		require.Fail(p.t, "it does not end", "%s", p.log)
		return 0
	}
}

func (p *daemon) dial() (net.Conn, *bufio.Reader) {
	p.t.Helper()
	c, err := net.Dial("tcp", p.addr)
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = c.Close() })
	require.NoError(p.t, c.SetDeadline(time.Now().Add(patience)))
	return c, bufio.NewReader(c)
}

func say(t *testing.T, c net.Conn, r *bufio.Reader, command, want string) {
	t.Helper()
	_, err := io.WriteString(c, command+"\r\n")
	require.NoError(t, err)
	line, err := r.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, want+"\r\n", line)
}

// info returns a field of INFO.
func (p *daemon) info(c net.Conn, r *bufio.Reader, field string) string {
	p.t.Helper()
	text, err := ask(r, c, "INFO")
	require.NoError(p.t, err)
	_, after, found := strings.Cut(text, "\n"+field+":")
	require.True(p.t, found, field)
	value, _, _ := strings.Cut(after, "\r\n")
	return value
}

// kinds are the transports of this system.
func kinds() []string {
	if _, err := os.Stat("/proc/self/statm"); err == nil {
		return []string{"goroutine", "epoll"}
	}
	return []string{"goroutine"}
}

// TestSignalStopsGracefully: after SIGTERM and SIGINT all received commands get their replies,
// blocked clients are woken, and the exit status is 0.
func TestSignalStopsGracefully(t *testing.T) {
	for _, kind := range kinds() {
		for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
			p := startDaemon(t, "--transport", kind)
			busy, busyIn := p.dial()
			blocked, blockedIn := p.dial()
			_, err := ask(busyIn, busy, "SW.ALLOW k 1 3600 1 FIXED ANCHOR FIRST")
			require.NoError(t, err)
			_, err = io.WriteString(blocked, "SW.ALLOW k 1 3600 1 FIXED ANCHOR FIRST BLOCK 0\r\n")
			require.NoError(t, err)
			require.Eventually(t, func() bool { return p.info(busy, busyIn, "blocked_clients") == "1" }, patience, time.Millisecond)
			const batch = 5000
			_, err = io.WriteString(busy, strings.Repeat("ECHO 0123456789\r\n", batch))
			require.NoError(t, err)
			require.NoError(t, p.Process.Signal(sig))
			rest, _ := io.ReadAll(busyIn) // ends with the connection
			require.True(t, bytes.HasSuffix(rest, []byte("0123456789\r\n")) || len(rest) == 0, "cut inside a reply: %q", rest[max(0, len(rest)-40):])
			answer, _ := io.ReadAll(blockedIn)
			require.True(t, bytes.HasPrefix(answer, []byte("*5\r\n:1\r\n:1\r\n:0\r\n")), "%q", answer)
			require.Zero(t, p.status(), "%s", p.log)
			require.Contains(t, p.log.String(), "msg=stopped")
		}
	}
}

// TestShutdownCommand: SHUTDOWN ends the program as a signal does.
func TestShutdownCommand(t *testing.T) {
	for _, kind := range kinds() {
		p := startDaemon(t, "--transport", kind)
		c, r := p.dial()
		say(t, c, r, "SHUTDOWN NOSUCH", "-ERR syntax error")
		_, err := io.WriteString(c, "PING\r\nSHUTDOWN NOSAVE\r\nPING\r\n")
		require.NoError(t, err)
		rest, _ := io.ReadAll(r)
		require.Equal(t, "+PONG\r\n", string(rest))
		require.Zero(t, p.status(), "%s", p.log)
	}
}

// beyondBuffers is the size of a reply that the buffers of a connection cannot hold.
const beyondBuffers = 64 << 20

// TestSecondSignalStopsAtOnce: a client that does not read its replies delays a graceful stop. A
// second signal stops the server at once.
func TestSecondSignalStopsAtOnce(t *testing.T) {
	for _, kind := range kinds() {
		p := startDaemon(t, "--transport", kind, "--shutdown-timeout", "3600", "--write-timeout", "3600", "--proto-max-bulk-len", strconv.Itoa(beyondBuffers))
		slow, _ := p.dial()
		c, r := p.dial()
		say(t, c, r, "SETRANGE long "+strconv.Itoa(beyondBuffers-1)+" x", ":"+strconv.Itoa(beyondBuffers))
		_, err := io.WriteString(slow, "GET long\r\n") // never read
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			text, err := ask(r, c, "INFO commandstats")
			return err == nil && strings.Contains(text, "cmdstat_get:calls=1,")
		}, patience, time.Millisecond)
		require.NoError(t, p.Process.Signal(syscall.SIGTERM))
		require.Eventually(t, func() bool { return strings.Contains(p.log.String(), "msg=stopping") }, patience, time.Millisecond)
		_, err = r.ReadByte()
		require.ErrorIs(t, err, io.EOF, "a client that has all its replies is hung up on")
		require.NotContains(t, p.log.String(), "msg=stopped", "it waits for the client that still may read")
		require.NoError(t, p.Process.Signal(syscall.SIGTERM))
		require.NotZero(t, p.status())
	}
}

// TestStopIsBounded: without a second signal the stop ends after its timeout.
func TestStopIsBounded(t *testing.T) {
	for _, kind := range kinds() {
		p := startDaemon(t, "--transport", kind, "--shutdown-timeout", "1", "--write-timeout", "3600")
		slow, _ := p.dial()
		go func() {
			_, _ = io.WriteString(slow, strings.Repeat("COMMAND DOCS\r\n", 5000)) // never read
		}()
		idle, r := p.dial()
		say(t, idle, r, "PING", "+PONG")
		require.NoError(t, p.Process.Signal(syscall.SIGTERM))
		require.Zero(t, p.status(), "%s", p.log)
	}
}

// TestServerSurvivesTheEndOfItsTerminal: neither SIGHUP nor the end of its log's reader ends the
// server.
func TestServerSurvivesTheEndOfItsTerminal(t *testing.T) {
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	p := newDaemon(t, exec.Command(os.Args[0]))
	p.Stderr = writer
	p.start()
	require.NoError(t, writer.Close())
	require.NoError(t, reader.Close())
	require.NoError(t, p.Process.Signal(syscall.SIGHUP))
	for range 3 {
		web, r := p.dial()
		_, err = io.WriteString(web, "POST / HTTP/1.1\r\n") // the server logs this
		require.NoError(t, err)
		_, err = r.ReadByte()
		require.Error(t, err)
	}
	c, r := p.dial()
	say(t, c, r, "PING", "+PONG")
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.Zero(t, p.status())
}

// TestHangupReloads: SIGHUP applies the whole file or nothing of it, and logs each fault.
func TestHangupReloads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cellserver.conf")
	require.NoError(t, os.WriteFile(path, []byte("maxclients 500\n"), 0o600))
	p := newDaemon(t, exec.Command(os.Args[0], path))
	p.start()
	logged := func(text string) {
		require.Eventually(t, func() bool { return strings.Contains(p.log.String(), text) }, patience, time.Millisecond, text)
	}
	logged("ready to accept")
	require.NoError(t, os.WriteFile(path, []byte("maxclients 600\ntimeout x\nport 1\nnosuch 1\n"), 0o600))
	require.NoError(t, p.Process.Signal(syscall.SIGHUP))
	logged("not reloaded, nothing has changed\" faults=2")
	logged(`:2: option`)
	logged(`:4: unknown option`)
	c, r := p.dial()
	require.Equal(t, "500", p.info(c, r, "maxclients"))
	require.NoError(t, os.WriteFile(path, []byte("maxclients 600\n"), 0o600))
	require.NoError(t, p.Process.Signal(syscall.SIGHUP))
	logged("the configuration was reloaded")
	require.Equal(t, "600", p.info(c, r, "maxclients"))
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.Zero(t, p.status())
}
