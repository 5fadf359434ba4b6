package server_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPushServesOnlyTheFirstOfManyWaiters: of a thousand clients that wait under one key
// each push serves the one that came first, and of a thousand that wait under a key each
// only the one of that key. When all hang up at once nothing of them is left, and what is
// pushed then stays.
func TestPushServesOnlyTheFirstOfManyWaiters(t *testing.T) {
	const n = 1000
	for name, key := range map[string]func(i int) string{
		"one key":   func(int) string { return "l" },
		"many keys": func(i int) string { return fmt.Sprint("l", i) },
	} {
		t.Run(name, func(t *testing.T) {
			eachTransport(t, func(t *testing.T, kind string) {
				f := start(t, kind, "--tcp-backlog", "2048")
				admin := f.dial()
				waiting := make(map[int]*client, n)
				for i := range n {
					waiting[i] = f.dial()
					waiting[i].send("BLPOP " + key(i) + " 0\r\n")
					eventually(t, "it waits", func() bool { return f.Keyspace().PopWaiting() == i+1 })
				}
				for served, at := range []int{0, 1, 2, 499, 3, 999} {
					if name == "one key" {
						at = served
					}
					require.Equal(t, ":1\r\n", admin.do("RPUSH", key(at), fmt.Sprint("x", at)))
					waiting[at].expect("*2\r\n" + bulk(key(at)) + bulk(fmt.Sprint("x", at)))
					require.Equal(t, "+PONG\r\n", waiting[at].do("PING"))
					require.Equal(t, n-served-1, f.Keyspace().PopWaiting())
					require.Equal(t, fmt.Sprint(n-served-1), admin.info("blocked_clients"))
				}
				var leaving sync.WaitGroup
				for _, c := range waiting {
					leaving.Go(func() { _ = c.Close() })
				}
				leaving.Wait()
				eventually(t, "nobody waits", func() bool {
					return f.Keyspace().PopWaiting() == 0 && admin.info("connected_clients") == "1"
				})
				require.Equal(t, "0", admin.info("blocked_clients"))
				require.Equal(t, ":1\r\n", admin.do("RPUSH", key(7), "kept"))
				require.Equal(t, array(bulk("kept")), admin.do("LRANGE", key(7), "0", "-1"))
			})
		})
	}
}

// TestPushOfManyServesManyWaitersInTheirOrder: one push of as many elements as clients
// wait serves all of them, each with the element of its place.
func TestPushOfManyServesManyWaitersInTheirOrder(t *testing.T) {
	const n = 1000
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--tcp-backlog", "2048")
		admin := f.dial()
		waiting, words := make([]*client, n), []string{"RPUSH", "l"}
		for i := range waiting {
			waiting[i] = f.dial()
			waiting[i].send("BLPOP l 0\r\n")
			eventually(t, "it waits", func() bool { return f.Keyspace().PopWaiting() == i+1 })
			words = append(words, fmt.Sprint("x", i))
		}
		require.Equal(t, fmt.Sprintf(":%d\r\n", n), admin.do(words...))
		for i, c := range waiting {
			c.expect("*2\r\n" + bulk("l") + bulk(fmt.Sprint("x", i)))
		}
		require.Zero(t, f.Keyspace().PopWaiting())
		require.Equal(t, ":0\r\n", admin.do("EXISTS", "l"))
	})
}
