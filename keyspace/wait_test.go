package keyspace_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/waiting"
	"github.com/cellserver/cellserver/slidingwindow"
)

func window(quantity int64) *slidingwindow.Call {
	return &slidingwindow.Call{Limit: 10, Window: time.Minute, Quantity: quantity, Mode: slidingwindow.Counter}
}

// queued is a waiter that counts its wake-ups.
type queued struct {
	waiting.Waiter
	woken int
}

func newWaiting() *queued {
	w := new(queued)
	w.Wake = func() { w.woken++ }
	return w
}

func TestChangesThatMakeRoomWakeTheFirst(t *testing.T) {
	k, other := []byte("k"), []byte("other")
	for _, row := range []struct {
		name string
		do   func(t *testing.T, v *keyspace.Handle)
		want int
	}{
		{"nothing", func(*testing.T, *keyspace.Handle) {}, 0},
		{"usage", func(t *testing.T, v *keyspace.Handle) {
			_, err := asks.Allow(v, 0, k, window(1))
			require.NoError(t, err)
		}, 0},
		{"a refund", func(t *testing.T, v *keyspace.Handle) {
			_, err := asks.Allow(v, 0, k, window(-1))
			require.NoError(t, err)
		}, 1},
		{"a refund of everything", func(t *testing.T, v *keyspace.Handle) {
			_, err := asks.Allow(v, 0, k, window(-99))
			require.NoError(t, err)
		}, 1},
		{"another mode", func(t *testing.T, v *keyspace.Handle) {
			c := window(1)
			c.Mode = slidingwindow.Log
			_, err := asks.Allow(v, 0, k, c)
			require.NoError(t, err)
		}, 1},
		{"a shorter window", func(t *testing.T, v *keyspace.Handle) {
			c := window(1)
			c.Window = time.Second
			_, err := asks.Allow(v, 0, k, c)
			require.NoError(t, err)
		}, 1},
		{"DEL", func(_ *testing.T, v *keyspace.Handle) { v.Delete(0, k) }, 1},
		{"DEL of another database's", func(_ *testing.T, v *keyspace.Handle) { v.Delete(1, k) }, 0},
		{"FLUSHDB", func(_ *testing.T, v *keyspace.Handle) { v.Flush(0) }, 1},
		{"FLUSHDB of another", func(_ *testing.T, v *keyspace.Handle) { v.Flush(1) }, 0},
		{"FLUSHALL", func(_ *testing.T, v *keyspace.Handle) { v.FlushAll() }, 1},
		{"RENAME away", func(_ *testing.T, v *keyspace.Handle) { v.Rename(0, k, other, false) }, 1},
		{"RENAME onto it", func(t *testing.T, v *keyspace.Handle) {
			require.NoError(t, v.Put(0, other, entry.String, nil, entry.NoExpiry))
			v.Rename(0, other, k, false)
		}, 1},
		{"EXPIRE in the past", func(_ *testing.T, v *keyspace.Handle) { v.Expire(0, k, t0, 0) }, 1},
		{"SET", func(t *testing.T, v *keyspace.Handle) {
			require.NoError(t, v.Put(0, k, entry.String, nil, entry.NoExpiry))
		}, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			overStorages(t, func(t *testing.T, o keyspace.Options) {
				ks, v, _ := open(t, o)
				for db := range 2 {
					_, err := asks.Allow(v, db, k, window(5))
					require.NoError(t, err)
				}
				first, second := newWaiting(), newWaiting()
				require.True(t, v.Enqueue(0, k, &first.Waiter))
				require.False(t, v.Enqueue(0, k, &second.Waiter))
				require.Equal(t, 2, ks.Waiting())
				row.do(t, v)
				require.Equal(t, row.want, first.woken)
				require.Zero(t, second.woken, "one at a time, in order")
				v.Dequeue(&first.Waiter)
				v.Dequeue(&second.Waiter)
				require.Zero(t, ks.Waiting())
			})
		})
	}
}

func TestExpiryWakesTheFirst(t *testing.T) {
	ks, v, c := open(t, keyspace.Options{})
	k := []byte("k")
	_, err := asks.Allow(v, 0, k, window(5))
	require.NoError(t, err)
	w := newWaiting()
	v.Enqueue(0, k, &w.Waiter)
	require.True(t, v.Expire(0, k, t0.Add(time.Second), 0))
	require.Equal(t, 1, w.woken, "to look when there will be room now")
	c.Advance(time.Second)
	require.Equal(t, 1, ks.Sweep(10).Removed)
	require.Equal(t, 2, w.woken)
	v.Dequeue(&w.Waiter)
}

func TestQueueIsFIFO(t *testing.T) {
	ks, v, _ := open(t, keyspace.Options{})
	k := []byte("k")
	a, b, c := newWaiting(), newWaiting(), newWaiting()
	for _, w := range []*queued{a, b, c} {
		v.Enqueue(0, k, &w.Waiter)
	}
	require.True(t, v.First(&a.Waiter))
	require.False(t, v.First(&b.Waiter))
	v.Dequeue(&b.Waiter)
	require.Zero(t, a.woken+b.woken+c.woken, "who leaves from the middle moves nobody up front")
	v.Dequeue(&a.Waiter)
	require.Equal(t, 1, c.woken, "whoever becomes the first is woken")
	require.True(t, v.First(&c.Waiter))
	v.Dequeue(&a.Waiter)
	require.Equal(t, 1, c.woken, "leaving twice is leaving once")
	v.Dequeue(&c.Waiter)
	require.False(t, v.First(&c.Waiter))
	require.Zero(t, ks.Waiting())
}

func TestReleasedAndShorterLeasesWakeTheFirst(t *testing.T) {
	_, v, _ := open(t, keyspace.Options{})
	k := []byte("k")
	lease := func(op concurrency.Op, member string, d time.Duration) {
		_, err := asks.Lease(v, 0, k, &concurrency.Call{Op: op, Member: []byte(member), Limit: 2, Lease: d})
		require.NoError(t, err)
	}
	lease(concurrency.Acquire, "a", time.Minute)
	lease(concurrency.Acquire, "b", time.Hour)
	w := newWaiting()
	v.Enqueue(0, k, &w.Waiter)
	lease(concurrency.Renew, "a", time.Second)
	require.Equal(t, 1, w.woken, "a lease that ends earlier")
	lease(concurrency.Acquire, "c", time.Second)
	require.Equal(t, 1, w.woken, "a refusal changes nothing")
	lease(concurrency.Release, "a", 0)
	require.Equal(t, 2, w.woken)
	lease(concurrency.Release, "a", 0)
	require.Equal(t, 2, w.woken, "nothing to release")
	lease(concurrency.Release, "b", 0)
	require.Equal(t, 3, w.woken)
	require.False(t, v.Exists(0, k))
	v.Dequeue(&w.Waiter)
}
