package drain_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/front/drain"
	"github.com/cellserver/cellserver/internal/bubble"
)

func TestTheEndComesAfterTheLatestCall(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var c drain.Calls
		began := time.Now()
		c.Begin()
		ctx, stop := c.Context(t.Context())
		defer stop()
		for range 5 {
			time.Sleep(10 * time.Second)
			require.NoError(t, ctx.Err(), "while a call runs")
			c.Begin()
			c.End()
		}
		c.End()
		for range 5 {
			time.Sleep(drain.Linger / 2)
			require.NoError(t, ctx.Err(), "soon after a call")
			c.Begin()
			c.End()
		}
		last := time.Now()
		<-ctx.Done()
		require.InDelta(t, drain.Linger, time.Since(last), float64(200*time.Millisecond))
		require.Greater(t, time.Since(began), 50*time.Second)
	})
}

func TestTheEndComesWithThatOfItsContext(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var c drain.Calls
		c.Begin()
		of, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		ctx, stop := c.Context(of)
		defer stop()
		<-ctx.Done()
		require.Equal(t, 3*time.Second, time.Since(began))
	})
}
