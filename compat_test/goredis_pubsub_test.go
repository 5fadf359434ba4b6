package compat_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestGoRedisPubSub: go-redis listens, hears, asks whether its connection lives and
// leaves, on both protocols.
func TestGoRedisPubSub(t *testing.T) {
	redis.SetLogger(quiet{})
	for _, protocol := range []int{2, 3} {
		inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
			s := w.Still(inproc.Epoch, nil)
			c := redis.NewClient(&redis.Options{Addr: s.Address(), Dialer: s.DialContext, Protocol: protocol})
			t.Cleanup(func() { require.NoError(t, c.Close()) })
			ctx := t.Context()
			listener := c.Subscribe(ctx, "news", "sport")
			next := func() any {
				got, err := listener.Receive(ctx)
				require.NoError(t, err)
				return got
			}
			require.Equal(t, &redis.Subscription{Kind: "subscribe", Channel: "news", Count: 1}, next())
			require.Equal(t, &redis.Subscription{Kind: "subscribe", Channel: "sport", Count: 2}, next())
			require.NoError(t, listener.PSubscribe(ctx, "n*"))
			require.Equal(t, &redis.Subscription{Kind: "psubscribe", Channel: "n*", Count: 3}, next())

			require.EqualValues(t, 2, c.Publish(ctx, "news", "hello").Val())
			require.Equal(t, &redis.Message{Channel: "news", Payload: "hello"}, next())
			require.Equal(t, &redis.Message{Channel: "news", Pattern: "n*", Payload: "hello"}, next())
			if protocol == 2 { // with RESP3 a PONG is no message, and go-redis does not expect one
				require.NoError(t, listener.Ping(ctx, "alive"))
				require.Equal(t, &redis.Pong{Payload: "alive"}, next())
			}
			require.Equal(t, map[string]int64{"news": 1, "none": 0}, c.PubSubNumSub(ctx, "news", "none").Val())
			require.ElementsMatch(t, []string{"news", "sport"}, c.PubSubChannels(ctx, "*").Val())
			require.EqualValues(t, 1, c.PubSubNumPat(ctx).Val())

			require.NoError(t, listener.Unsubscribe(ctx, "news"))
			require.Equal(t, &redis.Subscription{Kind: "unsubscribe", Channel: "news", Count: 2}, next())
			require.EqualValues(t, 1, c.Publish(ctx, "news", "again").Val())
			require.Equal(t, &redis.Message{Channel: "news", Pattern: "n*", Payload: "again"}, next())
			require.NoError(t, listener.Close())
		})
	}
}
