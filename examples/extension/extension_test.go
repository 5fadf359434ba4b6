package extension_test

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"example.com/extension"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/server"
)

// stillClock moves only when a test says so.
type stillClock struct{ now atomic.Int64 }

func (c *stillClock) Now() limit.Instant { return limit.Instant(c.now.Load()) }

func (*stillClock) Civil(i limit.Instant) limit.Instant { return i }

func (*stillClock) Derived(i limit.Instant) limit.Instant { return i }

func (*stillClock) AfterFunc(time.Duration, func()) clock.Timer { return noTimer{} }

type noTimer struct{}

func (noTimer) Stop() bool { return true }

// start runs a server with the commands of this module, and returns when it has loaded its state. stop ends it.
func start(t *testing.T, c clock.Clock, options ...string) (client *redis.Client, stop func()) {
	t.Helper()
	settings, err := config.Load(options, nil)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s, err := server.New(settings, server.Options{
		Groups: extension.Groups, Clock: c, Listeners: []net.Listener{l}, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() { err = s.Run(context.Background()) })
	client = redis.NewClient(&redis.Options{Addr: l.Addr().String()})
	loaded := func() bool { return client.Exists(t.Context(), "k").Err() == nil } // before that: -LOADING
	require.Eventually(t, loaded, time.Minute, time.Millisecond)
	return client, func() {
		require.NoError(t, client.Close())
		s.Stop()
		running.Wait()
		require.NoError(t, err)
	}
}

// TestCount: the entry is all that dispatch, scripts, transactions and COMMAND need.
func TestCount(t *testing.T) {
	client, stop := start(t, nil)
	defer stop()
	ctx := t.Context()
	do := func(args ...any) any {
		reply, err := client.Do(ctx, args...).Result()
		if err != nil {
			return err.Error()
		}
		return reply
	}
	require.Equal(t, int64(1), do("EX.COUNT", "n"))
	require.Equal(t, int64(-9), do("ex.count", "n", "-10"))
	require.Equal(t, "ERR value is not an integer or out of range", do("EX.COUNT", "n", "1e3"))
	require.Equal(t, "ERR syntax error", do("EX.COUNT", "n", "1", "2"))
	require.Equal(t, "ERR wrong number of arguments for 'ex.count' command", do("EX.COUNT"))
	require.Equal(t, "-9", do("GET", "n"))
	require.Equal(t, int64(-8), do("EVAL", "return redis.call('EX.COUNT', KEYS[1])", 1, "n"))
	queued, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Do(ctx, "EX.COUNT", "n", 8).Err() })
	require.NoError(t, err)
	require.Equal(t, int64(0), queued[0].(*redis.Cmd).Val())
	require.Equal(t, []any{"n"}, do("COMMAND", "GETKEYS", "EX.COUNT", "n"))
	require.Contains(t, do("COMMAND", "LIST", "FILTERBY", "PATTERN", "ex.*"), "ex.count")
	require.Equal(t, int64(1), do("HSET", "h", "f", "v"))
	require.Contains(t, do("EX.COUNT", "h"), "WRONGTYPE")
}

// TestTry: the family decides at the instant of the store's clock, and what it keeps
// survives a restart.
func TestTry(t *testing.T) {
	clock := &stillClock{}
	clock.now.Store(1_700_000_000_000_000_000)
	options := []string{"--appendonly", "yes", "--dir", t.TempDir()}
	client, stop := start(t, clock, options...)
	try := func() []int64 {
		reply, err := client.Do(t.Context(), "BACKOFF.TRY", "k", 10, 60).Int64Slice()
		require.NoError(t, err)
		return reply
	}
	require.Equal(t, []int64{0, 1, 0, -1, 20}, try())
	require.Equal(t, []int64{1, 1, 0, 10, 20}, try())
	clock.now.Add(int64(10 * time.Second))
	require.Equal(t, []int64{0, 1, 0, -1, 40}, try())
	stop()
	client, stop = start(t, clock, options...)
	defer stop()
	require.Equal(t, []int64{1, 1, 0, 20, 40}, try())
	clock.now.Add(int64(40 * time.Second))
	require.Equal(t, []int64{0, 1, 0, -1, 20}, try(), "forgotten")
	for _, waits := range [][2]any{{0, 1}, {2, 1}, {"x", 1}, {1, "1.5"}} {
		require.ErrorContains(t, client.Do(t.Context(), "BACKOFF.TRY", "k", waits[0], waits[1]).Err(), "ERR the waits must be")
	}
	require.NoError(t, client.Set(t.Context(), "text", "value", 0).Err())
	require.ErrorContains(t, client.Do(t.Context(), "BACKOFF.TRY", "text", 1, 1).Err(), "WRONGTYPE")
}
