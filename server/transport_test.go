package server_test

import (
	"log/slog"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

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
