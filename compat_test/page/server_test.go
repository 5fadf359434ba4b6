package page_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/activation"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/server"
)

// binary is the server, built once.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "cellserver-page-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "cellserver")
	build := exec.Command("go", "build", "-o", path, "./cmd/cellserver")
	build.Dir, build.Stderr = filepath.Join("..", ".."), os.Stderr
	return path, build.Run()
})

// running is a server with an admin port.
type running struct {
	t          testing.TB
	port, page string
	sockets    []*activation.Socket
	process    *exec.Cmd // nil for a server in this process
}

// start runs the program with those options until the test ends.
func start(t testing.TB, options ...string) *running {
	t.Helper()
	port, admin := activation.Open(t, "port"), activation.Open(t, "admin-port")
	r := &running{t: t, port: port.Port(), page: "http://" + admin.Addr, sockets: []*activation.Socket{port, admin}}
	r.begin(options...)
	t.Cleanup(r.kill)
	return r
}

// begin starts the program on the sockets, without a file of an earlier one.
func (r *running) begin(options ...string) {
	r.t.Helper()
	path, err := binary()
	require.NoError(r.t, err)
	r.process = exec.Command(path, append([]string{"--admin-port", r.sockets[1].Port(), "--admin-actions", "yes", "--dir", r.t.TempDir()}, options...)...)
	activation.Give(r.process, r.sockets...)
	r.process.Stderr = r.t.Output()
	require.NoError(r.t, r.process.Start())
	r.awaitPage()
}

// kill ends the program at once. It may be busy for ever, or gone.
func (r *running) kill() {
	_ = r.process.Process.Kill()
	_ = r.process.Wait()
}

// follow makes r a replica of another server, and waits until the page says that it gets the changes.
func (r *running) follow(primary *running, b *tab) {
	r.t.Helper()
	r.must("REPLICAOF", "127.0.0.1", primary.port)
	b.until(`[...document.querySelectorAll('#list li')].some(e => e.textContent.includes('link is up'))`)
}

// listen opens a port of loopback.
func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}

// startOn runs the server in this process, on files that can be made to fail.
func startOn(t testing.TB, fs persistence.FS, options ...string) *running {
	t.Helper()
	port, admin := listen(t), listen(t)
	r := &running{t: t, page: "http://" + admin.Addr().String()}
	_, r.port, _ = net.SplitHostPort(port.Addr().String())
	c, err := config.LoadFrom(append([]string{"--dir", t.TempDir()}, options...), nil, nil)
	require.NoError(t, err)
	s, err := server.New(c, server.Options{
		FS: fs, Log: slog.New(slog.DiscardHandler), Listeners: []net.Listener{port}, AdminListeners: []net.Listener{admin},
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.Error(t, <-ended, "it has no disk to write to")
	})
	r.awaitPage()
	return r
}

// awaitPage waits for the admin port.
func (r *running) awaitPage() {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		answer, err := http.Get(r.page + "/readyz")
		return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	}, 30*time.Second, 20*time.Millisecond)
}

// client is a connection to it.
func (r *running) client(name string) *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr: net.JoinHostPort("127.0.0.1", r.port), ClientName: name, Protocol: 2, ReadTimeout: time.Minute, MaxRetries: -1,
		DialerRetries: 1,
	})
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

// must runs a command that succeeds.
func (r *running) must(args ...any) {
	r.t.Helper()
	require.NoError(r.t, r.client("admin").Do(context.Background(), args...).Err())
}

// load calls limiters, ten times a second, with what next makes for each time, until the test
// ends. Errors are those of the incident.
func (r *running) load(name string, next func(i int) [][]any) {
	c := r.client(name)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			pipe := c.Pipeline()
			for _, args := range next(i) {
				pipe.Do(ctx, args...)
			}
			_, _ = pipe.Exec(ctx) // a reply may be an error, and so it shall
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	r.t.Cleanup(func() {
		stop()
		<-ended
	})
}

// untilRefused makes the calls of next until the server refuses one for want of memory, as fast as the
// machine can.
func (r *running) untilRefused(name string, next func(i int) [][]any) {
	c := r.client(name)
	for i := 0; ; i++ {
		pipe := c.Pipeline()
		for _, args := range next(i) {
			pipe.Do(context.Background(), args...)
		}
		if _, err := pipe.Exec(context.Background()); err != nil {
			require.ErrorContains(r.t, err, "OOM")
			return
		}
	}
}

// fullDisk is a disk that is full once it is told so.
type fullDisk struct {
	persistence.OS
	full atomic.Bool
}

type fullFile struct {
	persistence.File
	disk *fullDisk
}

// Create implements [persistence.FS].
func (d *fullDisk) Create(name string) (persistence.File, error) {
	f, err := d.OS.Create(name)
	return fullFile{f, d}, err
}

// Append implements [persistence.FS].
func (d *fullDisk) Append(name string) (persistence.File, error) {
	f, err := d.OS.Append(name)
	return fullFile{f, d}, err
}

// Write implements [persistence.File].
func (f fullFile) Write(p []byte) (int, error) {
	if f.disk.full.Load() {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(p)
}
