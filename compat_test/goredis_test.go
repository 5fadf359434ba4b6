package compat_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// quiet drops what the client library logs by itself: what a test finds wrong is in its own
// words.
type quiet struct{}

// Printf implements the logger of the library.
func (quiet) Printf(context.Context, string, ...any) {}

// TestGoRedis drives a server in this process through go-redis with its default
// options, on both protocols, while the clock stands still.
func TestGoRedis(t *testing.T) {
	redis.SetLogger(quiet{})
	for _, protocol := range []int{2, 3} {
		inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
			s := w.Still(inproc.Epoch, nil)
			c := redis.NewClient(&redis.Options{Addr: s.Address(), Dialer: s.DialContext, Protocol: protocol})
			t.Cleanup(func() { require.NoError(t, c.Close()) })
			throttle := func(cmd redis.Cmdable, key string) *redis.Cmd {
				return cmd.(interface {
					Do(ctx context.Context, args ...any) *redis.Cmd
				}).Do(t.Context(), "CL.THROTTLE", key, 1, 30, 60)
			}
			for _, want := range [][]int64{{0, 2, 1, -1, 2}, {0, 2, 0, -1, 4}, {1, 2, 0, 2, 4}} {
				got, err := throttle(c, "k").Int64Slice()
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
			s.Clock.Advance(2 * time.Second)

			var first, second *redis.Cmd
			_, err := c.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
				first, second = throttle(p, "k"), throttle(p, "k")
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, []any{int64(0), int64(2), int64(0), int64(-1), int64(4)}, first.Val())
			require.Equal(t, []any{int64(1), int64(2), int64(0), int64(2), int64(4)}, second.Val())

			require.ErrorContains(t, c.Do(t.Context(), "CL.THROTTLE", "k").Err(), "Cell error: Store error: Usage")
			require.ErrorIs(t, c.Get(t.Context(), "none").Err(), redis.Nil)
			ttl, err := c.PTTL(t.Context(), "k").Result()
			require.NoError(t, err)
			require.Equal(t, 4*time.Second, ttl)

			err = c.Watch(t.Context(), func(tx *redis.Tx) error {
				require.NoError(t, c.Del(t.Context(), "k").Err())
				_, err := tx.TxPipelined(t.Context(), func(p redis.Pipeliner) error { return throttle(p, "k").Err() })
				return err
			}, "k")
			require.ErrorIs(t, err, redis.TxFailedErr)
		})
	}
}
