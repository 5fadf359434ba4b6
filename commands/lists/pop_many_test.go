package lists_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestPushServesOnlyTheFirstOfManyWaiters: if a thousand clients wait under one key, each push
// serves the one that came first, and if a thousand wait under a key each, a push serves only the
// one of its key. After all of them disconnect at once nothing of them is left, and further
// elements stay in the list.
func TestPushServesOnlyTheFirstOfManyWaiters(t *testing.T) {
	const n = 1000
	for name, key := range map[string]func(i int) string{
		"one key":   func(int) string { return "l" },
		"many keys": func(i int) string { return fmt.Sprint("l", i) },
	} {
		t.Run(name, func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				s := w.Start()
				admin := s.Dial()
				waiters := make(map[int]*inproc.Client, n)
				for i := range n {
					waiters[i] = s.Dial()
					waiters[i].Send("BLPOP " + key(i) + " 0\r\n")
					w.Settle()
					require.Equal(t, i+1, s.Keyspace().PopWaiting())
				}
				for served, at := range []int{0, 1, 2, 499, 3, 999} {
					if name == "one key" {
						at = served
					}
					require.Equal(t, ":1\r\n", admin.Do("RPUSH", key(at), fmt.Sprint("x", at)))
					waiters[at].Expect("*2\r\n" + inproc.Bulk(key(at)) + inproc.Bulk(fmt.Sprint("x", at)))
					require.Equal(t, inproc.Pong, waiters[at].Do("PING"))
					require.Equal(t, n-served-1, s.Keyspace().PopWaiting())
					require.Equal(t, fmt.Sprint(n-served-1), admin.Info("blocked_clients"))
				}
				var leaving sync.WaitGroup
				for _, c := range waiters {
					leaving.Go(func() { _ = c.Close() })
				}
				leaving.Wait()
				w.Settle()
				require.Zero(t, s.Keyspace().PopWaiting())
				require.Equal(t, "1", admin.Info("connected_clients"))
				require.Equal(t, "0", admin.Info("blocked_clients"))
				require.Equal(t, ":1\r\n", admin.Do("RPUSH", key(7), "kept"))
				require.Equal(t, inproc.Array(inproc.Bulk("kept")), admin.Do("LRANGE", key(7), "0", "-1"))
			})
		})
	}
}

// TestPushOfManyServesManyWaitersInTheirOrder: a push of as many elements as clients wait serves
// all of them in the order of their arrival.
func TestPushOfManyServesManyWaitersInTheirOrder(t *testing.T) {
	const n = 1000
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		admin := s.Dial()
		waiters, words := make([]*inproc.Client, n), []string{"RPUSH", "l"}
		for i := range waiters {
			waiters[i] = s.Dial()
			waiters[i].Send("BLPOP l 0\r\n")
			w.Settle()
			require.Equal(t, i+1, s.Keyspace().PopWaiting())
			words = append(words, fmt.Sprint("x", i))
		}
		require.Equal(t, fmt.Sprintf(":%d\r\n", n), admin.Do(words...))
		for i, c := range waiters {
			c.Expect("*2\r\n" + inproc.Bulk("l") + inproc.Bulk(fmt.Sprint("x", i)))
		}
		require.Zero(t, s.Keyspace().PopWaiting())
		require.Equal(t, ":0\r\n", admin.Do("EXISTS", "l"))
	})
}
