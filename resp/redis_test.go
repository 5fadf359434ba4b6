//go:build real

package resp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/programs"
)

// startRedis runs a redis-server until the test ends, and returns its Unix socket. Without the
// program the test is skipped, but fails in CI, so that the comparison cannot be omitted unnoticed.
func startRedis(t *testing.T, options ...string) (socket string) {
	t.Helper()
	program := programs.Find(t, "redis-server")
	dir := t.TempDir()
	socket = filepath.Join(dir, "redis")
	ctx, cancel := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, program, append([]string{
		"--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", dir,
		"--logfile", "redis.log", "--proto-max-bulk-len", "1048576", "--maxclients", "100",
	}, options...)...)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		cancel()
		_ = command.Wait() // it returns an error, because the process was killed
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, time.Minute, 10*time.Millisecond, "redis-server does not answer")
	return socket
}

// converse sends a stream and returns all replies, and whether the server closed the connection by
// itself. It expects wantBytes, and waits a moment to check that an open connection stays open and
// gets no more bytes.
func converse(t *testing.T, socket string, stream []byte, wantBytes int, wantClosed bool) (replies string, closed bool) {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = conn.Write(stream) // fails if the server closes before it has read everything
	}()
	received := make([]byte, wantBytes)
	n, err := io.ReadFull(conn, received)
	replies = string(received[:n])
	if err == nil {
		if !wantClosed {
			require.NoError(t, conn.SetReadDeadline(time.Now().Add(5*time.Millisecond)))
		}
		more, err := io.ReadAll(conn)
		replies += string(more)
		closed = err == nil || errors.Is(err, syscall.ECONNRESET)
	} else {
		closed = true
	}
	<-sent
	return replies, closed
}

func TestFramingAgreesWithRedis(t *testing.T) {
	open := startRedis(t)
	locked := startRedis(t, "--requirepass", "secret")
	for _, s := range readStreams(t) {
		if s.differs != "" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			socket := open
			if s.password {
				socket = locked
			}
			want := strings.Join(s.replies, "")
			replies, closed := converse(t, socket, s.send, len(want), s.closed)
			require.Equal(t, want, replies)
			require.Equal(t, s.closed, closed)
		})
	}
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 600 {
		send := []byte(randomStream(random))
		server := newEchoServer(false)
		server.serve(send)
		replies, closed := converse(t, open, send, len(server.out.Buf), server.closed)
		at := fmt.Sprintf("stream %d: %q", i, send)
		require.Equal(t, string(server.out.Buf), replies, at)
		require.Equal(t, server.closed, closed, at)
	}
}
