package server_test

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/simnet"
	"github.com/cellserver/cellserver/server"
	"github.com/cellserver/cellserver/transport"
)

// idleHandler is a handler that no client reaches.
type idleHandler struct{ transport.Handler }

func (idleHandler) NewWorker() transport.Worker { return nil }

func TestNewTransportKnowsItsKinds(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	for _, kind := range []transport.Kind{transport.KindAuto.Resolve(), transport.KindGoroutine} {
		tr, err := server.NewTransport(kind, idleHandler{}, transport.DefaultLimits(), 1, quiet)
		require.NoError(t, err)
		require.NoError(t, tr.Shutdown(t.Context()))
	}
	unknown := []transport.Kind{"carrier pigeon"}
	if runtime.GOOS != "linux" {
		unknown = append(unknown, transport.KindEpoll)
	}
	for _, kind := range unknown {
		_, err := server.NewTransport(kind, idleHandler{}, transport.DefaultLimits(), 1, quiet)
		require.ErrorContains(t, err, string(kind))
	}
}

// TestFailedStartLeavesNothing: if a server cannot start because of its last settings, its
// listeners, event loops and all other goroutines end.
func TestFailedStartLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	for _, kind := range []transport.Kind{transport.KindAuto.Resolve(), transport.KindGoroutine} {
		users := filepath.Join(t.TempDir(), "users.acl")
		require.NoError(t, os.WriteFile(users, []byte("user alice +nonsense\n"), 0o600))
		c, err := config.Load([]string{"--transport", string(kind), "--aclfile", users}, nil)
		require.NoError(t, err)
		l, err := simnet.New().Listen("127.0.0.1:0")
		require.NoError(t, err)
		_, err = server.New(c, server.Options{Log: slog.New(slog.DiscardHandler), Listeners: []net.Listener{l}})
		require.ErrorContains(t, err, "nonsense")
	}
	goleak.VerifyNone(t, before)
}
