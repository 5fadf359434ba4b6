package transport_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport"
)

// stuckHandler keeps the loop that makes it until it may go on.
type stuckHandler struct {
	transport.Handler
	goOn chan struct{}
}

func (h stuckHandler) NewWorker() transport.Worker {
	<-h.goOn
	return nil
}

// TestLoopsAnswerUnlessTheyAreStuck, and one that is stuck is busy.
func TestLoopsAnswerUnlessTheyAreStuck(t *testing.T) {
	h := stuckHandler{goOn: make(chan struct{})}
	e, err := transport.NewEpoll(h, transport.DefaultLimits(), 2, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, e.Answer(ended))
	require.Equal(t, []float64{1, 1}, e.Busy())
	close(h.goOn)
	require.NoError(t, e.Answer(t.Context()))
	require.NoError(t, e.Answer(t.Context()), "they answer when they sleep, too")
	require.NoError(t, e.Shutdown(t.Context()))
	require.NoError(t, e.Answer(t.Context()), "nobody is left to wait for")
}
