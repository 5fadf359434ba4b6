package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/server"
)

// TestHeapBoundFollowsMaxmemory: what Go's runtime is told is what maxmemory leaves it,
// less what the tables take outside of its heap, also when CONFIG SET changes it.
func TestHeapBoundFollowsMaxmemory(t *testing.T) {
	var mu sync.Mutex
	var told []int64
	last := func() int64 {
		mu.Lock()
		defer mu.Unlock()
		if len(told) == 0 {
			return 0
		}
		return told[len(told)-1]
	}
	f := startHeapBound(t, func(n int64) int64 {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, n)
		return 0
	})
	require.Zero(t, last(), "without maxmemory Go's own setting stays")
	cl := f.dial()
	const mib = 1 << 20
	require.Equal(t, "+OK\r\n", cl.do("CONFIG", "SET", "maxmemory", "100mb"))
	require.EqualValues(t, 146_800_640, last(), "ten elevenths of 110 + 64 - 20 MiB")
	require.Equal(t, "+OK\r\n", cl.do("CONFIG", "SET", "maxmemory", "200mb"))
	const large = 251_658_240 // ten elevenths of 220 + 64 - 20 MiB
	require.EqualValues(t, large, last())
	for i := range 100_000 {
		cl.command("CL.THROTTLE", fmt.Sprintf("key:%030d", i), "15", "1", "3600")
		if i%1000 == 999 {
			for range 1000 {
				require.Equal(t, byte('*'), cl.reply()[0])
			}
		}
	}
	outside := f.Keyspace().Outside()
	if outside > 0 { // where tables lie in Go's heap there is nothing to take off
		require.Greater(t, outside, int64(4*mib))
		eventually(t, "the growth of the tables is taken off", func() bool { return last() <= large-outside/11*10+mib })
	}
	require.Equal(t, "+OK\r\n", cl.do("CONFIG", "SET", "maxmemory", "4gb"))
	require.LessOrEqual(t, last(), int64(4506+64-20-32+1)*mib-outside)
	require.Greater(t, last(), int64(4506+64-20-32-2)*mib-outside)
	require.Equal(t, "+OK\r\n", cl.do("CONFIG", "SET", "maxmemory", "1mb"))
	require.GreaterOrEqual(t, last(), int64(32*mib), "whatever the bound, Go can work")
	require.Equal(t, "+OK\r\n", cl.do("CONFIG", "SET", "maxmemory", "0"))
	require.EqualValues(t, math.MaxInt64, last())
}

// startHeapBound starts a server that tells limitHeap what Go's heap may take.
func startHeapBound(t *testing.T, limitHeap func(int64) int64) *fixture {
	c, err := config.Load([]string{"--dir", t.TempDir()}, nil)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &fixture{t: t, clock: clocktest.New(epoch), addr: l.Addr().String(), done: make(chan error, 1)}
	f.Server, err = server.New(c, server.Options{
		Clock:     f.clock,
		Log:       slog.New(slog.DiscardHandler),
		Listeners: []net.Listener{l},
		LimitHeap: limitHeap,
	})
	require.NoError(t, err)
	go func() { f.done <- f.Run(context.Background()) }()
	t.Cleanup(f.end)
	eventually(t, "loaded", func() bool { return !f.Engine().Loading() })
	return f
}
