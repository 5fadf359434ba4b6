package keyspace_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/waiting"
)

// popper returns a waiter that logs its calls of Ready.
func popper(kind entry.Kind, name string, ready *[]string) *waiting.PopWaiter {
	return &waiting.PopWaiter{Kind: kind, Owner: name, Ready: func(_ int, key string) { *ready = append(*ready, name+":"+key) }}
}

func pushTo(t *testing.T, v *keyspace.Handle, key string, values ...string) {
	t.Helper()
	require.NoError(t, v.WriteList(0, []byte(key), func(l *collection.List) error {
		for _, value := range values {
			if err := l.PushBack([]byte(value)); err != nil {
				return err
			}
		}
		return nil
	}))
}

func popFrom(t *testing.T, v *keyspace.Handle, key []byte) string {
	t.Helper()
	var value string
	require.NoError(t, v.WriteList(0, key, func(l *collection.List) error {
		b, _ := l.PopFront()
		value = string(b)
		return nil
	}))
	return value
}

// TestPopWaitersAreServedInOrder: elements are offered to the waiters in the order of the changes
// of keys and of the waiters' arrival, once for each key, and no waiter is left out.
func TestPopWaitersAreServedInOrder(t *testing.T) {
	ks := keyspace.New(keyspace.Options{Clock: clocktest.New(1)})
	v := ks.NewHandle()
	defer v.Close()
	var ready, served []string
	keys := [][]byte{[]byte("a"), []byte("b"), []byte("b")}
	refs := []keyspace.Ref{{Key: keys[0]}, {Key: keys[1]}}
	waiters := map[string]*waiting.PopWaiter{}
	for _, name := range []string{"one", "two", "three"} {
		waiters[name] = popper(entry.List, name, &ready)
		v.Lock(refs)
		v.EnqueuePop(0, keys, waiters[name])
		v.Unlock()
	}
	sorted := popper(entry.SortedSet, "sorted", &ready)
	v.Lock(refs)
	v.EnqueuePop(0, keys[:1], sorted)
	v.Unlock()
	require.Equal(t, 7, ks.PopWaiting())

	v.Lock(refs)
	v.Serving()
	pushTo(t, v, "b", "1")
	pushTo(t, v, "a", "2", "3", "4")
	gone := map[string]bool{}
	v.Serve(func(w *waiting.PopWaiter, _ int, key []byte) keyspace.Served {
		name := w.Owner.(string)
		if gone[name] {
			return keyspace.ServedGone
		}
		gone[name] = true
		served = append(served, name+":"+string(key)+popFrom(t, v, key))
		return keyspace.ServedYes
	})
	v.Unlock()
	require.Equal(t, []string{"one:b1", "two:a2", "three:a3"}, served)
	require.Empty(t, ready)
	for _, w := range waiters {
		v.DequeuePop(w)
	}
	v.DequeuePop(sorted)
	v.DequeuePop(sorted)
	require.Zero(t, ks.PopWaiting())
}

// TestPopWaitersAreNotifiedWhenNobodyServes changes a key without Serve, or leaves a change
// unserved in Serve. The first waiter is notified.
func TestPopWaitersAreNotifiedWhenNobodyServes(t *testing.T) {
	ks := keyspace.New(keyspace.Options{Clock: clocktest.New(1)})
	v, other := ks.NewHandle(), ks.NewHandle()
	defer v.Close()
	defer other.Close()
	var ready []string
	w := popper(entry.List, "w", &ready)
	w.Dest = []byte("to")
	refs := []keyspace.Ref{{Key: []byte("l")}}
	v.Lock(refs)
	v.EnqueuePop(0, [][]byte{refs[0].Key}, w)
	require.False(t, v.IsLocked([]byte(strings.Repeat("x", 100))) && v.IsLocked([]byte("y")) && v.IsLocked([]byte("z")))
	v.Unlock()

	pushTo(t, other, "l", "1")
	require.Equal(t, []string{"w:l"}, ready)
	other.Lock(refs)
	other.Serving()
	other.MarkReady(0, refs[0].Key)
	require.Len(t, ready, 1, "it is going to be served")
	other.Unlock()
	require.Len(t, ready, 2, "it was not served")
	other.Lock(refs)
	other.Serving()
	other.MarkReady(0, refs[0].Key)
	other.Serve(func(*waiting.PopWaiter, int, []byte) keyspace.Served { return keyspace.ServedLater })
	other.Unlock()
	require.Len(t, ready, 3)

	moves := v.AppendMoves(refs)
	require.Len(t, moves, 2)
	require.Equal(t, "to", string(moves[1].Key))
	v.DequeuePop(w)
	require.Len(t, v.AppendMoves(refs), 1)
}

// TestPopWaitersAreNotifiedOnce changes a key often. Its waiter is notified once, until a handle
// serves it, and never of a key that is neither a list nor a sorted set.
func TestPopWaitersAreNotifiedOnce(t *testing.T) {
	ks := keyspace.New(keyspace.Options{Clock: clocktest.New(1)})
	v := ks.NewHandle()
	defer v.Close()
	var ready []string
	w, key := popper(entry.List, "w", &ready), []byte("k")
	refs := []keyspace.Ref{{Key: key}}
	v.Lock(refs)
	v.EnqueuePop(0, [][]byte{key}, w)
	v.Unlock()
	for range 3 {
		_, err := v.SetString(0, key, []byte("1"), keyspace.SetOptions{Expiry: entry.NoExpiry})
		require.NoError(t, err)
	}
	require.Empty(t, ready, "nobody waits for a string")
	require.True(t, v.Delete(0, key))
	for range 3 {
		pushTo(t, v, "k", "1")
	}
	require.Equal(t, []string{"w:k"}, ready)
	v.Lock(refs)
	v.Serving()
	v.MarkReady(0, key)
	v.Serve(func(*waiting.PopWaiter, int, []byte) keyspace.Served { return keyspace.ServedGone })
	v.Unlock()
	pushTo(t, v, "k", "1")
	require.Len(t, ready, 2, "whoever was told has come and gone")
	v.DequeuePop(w)
}
