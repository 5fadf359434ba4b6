package epoll_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/epoll"
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

// stuckHandler blocks the loop that creates its worker until it may proceed.
type stuckHandler struct {
	transport.Handler
	proceed chan struct{}
}

func (h stuckHandler) NewWorker() transport.Worker {
	<-h.proceed
	return nil
}

// TestLoopsAnswerUnlessTheyAreStuck also checks that a stuck loop counts as busy.
func TestLoopsAnswerUnlessTheyAreStuck(t *testing.T) {
	h := stuckHandler{proceed: make(chan struct{})}
	e, err := epoll.New(h, transport.DefaultLimits(), 2, transporttest.Quiet, time.Now)
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, e.Answer(ended))
	require.Equal(t, []float64{1, 1}, e.Busy())
	close(h.proceed)
	require.NoError(t, e.Answer(t.Context()))
	require.NoError(t, e.Answer(t.Context()), "they answer when they sleep, too")
	require.NoError(t, e.Shutdown(t.Context()))
	require.NoError(t, e.Answer(t.Context()), "nobody is left to wait for")
}
