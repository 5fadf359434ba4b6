//go:build real && unix

package rueidislimit_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clients/go/limit"
	"github.com/cellserver/cellserver/clients/go/rueidislimit"
)

// TestOutagesOfTheProgram: a server that is stopped or killed takes no call longer than its deadline, and decides again when it is back.
func TestOutagesOfTheProgram(t *testing.T) {
	dir := t.TempDir()
	bin, socket := filepath.Join(dir, "cellserver"), filepath.Join(dir, "s")
	out, err := exec.Command("go", "-C", "../../..", "build", "-o", bin, "./cmd/cellserver").CombinedOutput()
	require.NoError(t, err, "%s", out)
	run := func() (*exec.Cmd, rueidis.Client) {
		cmd := exec.Command(bin, "--port", "0", "--unixsocket", socket, "--dir", dir)
		require.NoError(t, cmd.Start())
		var c rueidis.Client
		require.Eventually(t, func() bool {
			if c, err = rueidis.NewClient(rueidis.ClientOption{
				InitAddress: []string{socket}, ForceSingleClient: true, DisableCache: true,
				DialCtxFn: func(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
					return d.DialContext(ctx, "unix", path)
				},
			}); err != nil {
				return false
			}
			return c.Do(t.Context(), c.B().Arbitrary("RL.POLICY", "SET", "api", "LIMITS", "TB", "100", "1", "3600").Build()).Error() == nil
		}, time.Minute, 10*time.Millisecond)
		return cmd, c
	}
	kill := func(cmd *exec.Cmd) {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	}
	cmd, c := run()
	defer func() { kill(cmd) }()
	defer c.Close()
	l, err := limit.New(t.Context(), limit.Options{
		Client: rueidislimit.New(c), Policy: "api", OnUnavailable: limit.Deny, Deadline: 300 * time.Millisecond, RandomID: true,
		Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	answered := func() bool {
		r, err := l.Take(t.Context(), limit.Call{Key: "look"})
		return err == nil && r.Source == limit.Server
	}
	// longest is how long a call may take on a machine that is busy; one that waits for the server would take for ever.
	const longest = 20 * time.Second
	unanswered := func() {
		for range 10 {
			began := time.Now()
			r, err := l.Allow(t.Context(), "ann")
			require.NoError(t, err)
			require.Less(t, time.Since(began), longest)
			require.Equal(t, limit.Unavailable, r.Source)
		}
	}
	require.Eventually(t, answered, time.Minute, 10*time.Millisecond)

	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	var stopped syscall.WaitStatus
	_, err = syscall.Wait4(cmd.Process.Pid, &stopped, syscall.WUNTRACED, nil) // until then a thread could answer
	require.NoError(t, err)
	require.True(t, stopped.Stopped())
	unanswered()
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	require.Eventually(t, answered, time.Minute, 10*time.Millisecond)

	kill(cmd)
	unanswered()
	var other rueidis.Client
	cmd, other = run()
	other.Close()
	require.Eventually(t, answered, time.Minute, 10*time.Millisecond)
}
