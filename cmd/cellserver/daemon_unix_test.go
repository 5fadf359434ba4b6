//go:build real && unix

package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/activation"
	"github.com/cellserver/cellserver/internal/programs"
)

// runToEnd runs the program to its end and returns its status and its output.
func runToEnd(t *testing.T, stdin string, args ...string) (status int, said string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asServer+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &out
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		return exit.ExitCode(), out.String()
	}
	return 0, out.String()
}

// endDetached ends a server in the background by its pidfile, and waits until that is removed.
func endDetached(t *testing.T, pidfile string) {
	t.Helper()
	content, err := os.ReadFile(pidfile)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	require.NoError(t, err)
	require.NotEqual(t, os.Getpid(), pid)
	require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
	require.Eventually(t, func() bool {
		_, err := os.Stat(pidfile)
		return os.IsNotExist(err)
	}, patience, time.Millisecond)
}

// shortDir returns a temporary directory whose name is short enough for sockets in it.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cell")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestDaemonizeReturnsOnceTheServerListens: the command ends with status 0 when clients can
// connect, the pidfile contains the ID of the server's process, and a configuration from standard
// input works, too.
func TestDaemonizeReturnsOnceTheServerListens(t *testing.T) {
	dir := shortDir(t)
	socket, pidfile := filepath.Join(dir, "socket"), filepath.Join(dir, "pid")
	status, said := runToEnd(t, "timeout 77\ndaemonize yes\n", "--port", "0", "--unixsocket", socket, "--dir", dir, "--pidfile", "pid", "--logfile", "log", "-")
	require.Zero(t, status, said)
	require.Empty(t, said)
	t.Cleanup(func() { endDetached(t, pidfile) })
	c, err := net.Dial("unix", socket)
	require.NoError(t, err, "it returned before the server listened")
	_, err = c.Write([]byte("CONFIG GET timeout\r\n"))
	require.NoError(t, err)
	reply := make([]byte, len("*2\r\n$7\r\ntimeout\r\n$2\r\n77\r\n"))
	_, err = io.ReadFull(c, reply)
	require.NoError(t, err)
	require.Contains(t, string(reply), "77")
	require.NoError(t, c.Close())
	require.FileExists(t, filepath.Join(dir, "log"))

	// The errors of a second server are reported by the process that starts it.
	status, said = runToEnd(t, "", "--port", "0", "--unixsocket", socket, "--dir", t.TempDir(), "--daemonize", "yes")
	require.Equal(t, 1, status)
	require.Contains(t, said, "cellserver: listening on "+socket+": another server is there")
}

// stockConf is the redis.conf of Debian's package redis-server.
const stockConf = "/etc/redis/redis.conf"

// TestDebiansRedisConfStarts: the unchanged file has no fault, and with the line that loads
// redis-cell it starts a server in the background. Only paths that belong to Redis are changed.
func TestDebiansRedisConfStarts(t *testing.T) {
	content, err := os.ReadFile(stockConf)
	if err != nil {
		programs.Missing(t, "no readable redis.conf of Debian's redis-server: %v", err)
	}
	require.Contains(t, string(content), "\ndaemonize yes\n")
	_, err = config.Load([]string{stockConf, "--loadmodule", "/usr/lib/redis/modules/libredis_cell.so"}, nil)
	require.NoError(t, err)

	dir := shortDir(t)
	conf := filepath.Join(dir, "redis.conf")
	content = append(content, "\nloadmodule /usr/lib/redis/modules/libredis_cell.so\n"...)
	require.NoError(t, os.WriteFile(conf, content, 0o600))
	status, said := runToEnd(t, "", conf, "--port", "0", "--unixsocket", filepath.Join(dir, "socket"), "--dir", dir, "--logfile", "redis-server.log", "--pidfile", "redis-server.pid")
	require.Zero(t, status, said)
	endDetached(t, filepath.Join(dir, "redis-server.pid"))
	var log []byte
	require.Eventually(t, func() bool { // the last line comes after the removal of the pidfile
		log, err = os.ReadFile(filepath.Join(dir, "redis-server.log"))
		return err == nil && strings.Contains(string(log), "msg=stopped")
	}, patience, time.Millisecond, "%s", log)
	require.Equal(t, 1, strings.Count(string(log), "have no effect here"), "%s", log)
	require.Contains(t, string(log), "redis-cell is built in")
}

// TestSupervisedServerTellsSystemd: the server reports that it is ready, that it reloads its
// configuration, and that it stops. It then stays in the foreground, whatever daemonize says.
func TestSupervisedServerTellsSystemd(t *testing.T) {
	dir := shortDir(t)
	address := &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"}
	systemd, err := net.ListenUnixgram("unixgram", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = systemd.Close() })
	require.NoError(t, systemd.SetReadDeadline(time.Now().Add(patience)))
	t.Setenv("NOTIFY_SOCKET", address.Name)
	p := startDaemon(t, "--supervised", "auto", "--daemonize", "yes", "--dir", dir)
	heard := func() string {
		news := make([]byte, 256)
		n, err := systemd.Read(news)
		require.NoError(t, err)
		return string(news[:n])
	}
	require.Contains(t, heard(), "READY=1\n")
	require.NoError(t, p.Process.Signal(syscall.SIGHUP))
	require.Contains(t, heard(), "RELOADING=1\n")
	require.Contains(t, heard(), "READY=1\n")
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.Equal(t, "STOPPING=1\n", heard())
	require.Zero(t, p.status())
}

// TestSocketsOfAServiceManager: the program serves inherited sockets, each in place of its option,
// and stays in the foreground, whatever daemonize says.
func TestSocketsOfAServiceManager(t *testing.T) {
	sockets := []*activation.Socket{activation.Open(t, "port"), activation.Open(t, "cellserver.socket"), activation.Open(t, "admin-port")}
	cmd := exec.Command(os.Args[0], "--port", "1", "--admin-port", "2", "--daemonize", "yes", "--dir", t.TempDir())
	p := &daemon{Cmd: cmd, t: t, addr: sockets[0].Addr, log: &syncBuffer{}, ended: make(chan struct{})}
	p.Env, p.Stderr = append(os.Environ(), asServer+"=1"), p.log
	activation.Give(cmd, sockets...)
	p.start()
	p.addr = sockets[1].Addr // an unknown name stands for port
	c, r := p.dial()
	say(t, c, r, "PING", "+PONG")
	require.Equal(t, sockets[0].Port(), p.info(c, r, "tcp_port"))
	reply, err := http.Get("http://" + sockets[2].Addr + "/healthz")
	require.NoError(t, err)
	require.NoError(t, reply.Body.Close())
	require.Equal(t, http.StatusOK, reply.StatusCode)
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.Zero(t, p.status(), "%s", p.log)
}

// TestSocketsThatAreNone: the program reports which descriptor is not a socket, or is not
// listening.
func TestSocketsThatAreNone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	connected, err := conn.(*net.TCPConn).File()
	require.NoError(t, err)
	defer connected.Close()
	for fds, want := range map[string]string{"1": "inherited sockets: descriptor 3", "x": `LISTEN_FDS is "x", no number`} {
		t.Setenv("LISTEN_FDS", fds)
		cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$0" "$@" 3</dev/null`, os.Args[0], "--dir", t.TempDir())
		cmd.Env = append(os.Environ(), asServer+"=1")
		said, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(said), want)
	}
	t.Setenv("LISTEN_FDS", "1")
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, os.Args[0], "--dir", t.TempDir())
	cmd.Env, cmd.ExtraFiles = append(os.Environ(), asServer+"=1"), []*os.File{connected}
	said, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), "inherited sockets: descriptor 3: the socket does not listen")
}
