package keyspace_test

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/keyspace"
)

// TestRewritingFewKeysIsRefusedNothing: a command that locks keys and changes them any number of
// times is not refused because of the length of its record, which has the final values.
func TestRewritingFewKeysIsRefusedNothing(t *testing.T) {
	effort.Alone(t)
	value := bytes.Repeat([]byte("v"), 3_000_000)
	keys := [][]byte{[]byte("a"), []byte("b"), []byte("c")}
	set := func(v *keyspace.Handle, i int, value []byte) error {
		_, err := v.SetString(0, keys[i%3], value, keyspace.SetOptions{Expiry: entry.NoExpiry})
		return err
	}
	field := func(v *keyspace.Handle, i int, name string) error {
		return v.WriteHash(0, keys[i%3], func(h *collection.Hash) error {
			_, err := h.Set([]byte(name), value[:1_000_000])
			return err
		})
	}
	for name, change := range map[string]struct {
		times, most int
		do          func(v *keyspace.Handle, i int) error
	}{
		"long strings":  {100, 10_000_000, func(v *keyspace.Handle, i int) error { return set(v, i, value) }},
		"short strings": {60_000, 5_000_000, func(v *keyspace.Handle, i int) error { return set(v, i, value[:100]) }},
		"strings that go": {100, 10_000_000, func(v *keyspace.Handle, i int) error {
			defer v.Delete(0, keys[i%3])
			return set(v, i, value)
		}},
		"flushes": {100, 10_000_000, func(v *keyspace.Handle, i int) error {
			defer v.Flush(0)
			return set(v, i, value)
		}},
		"a field of a hash":     {100, 10_000_000, func(v *keyspace.Handle, i int) error { return field(v, i, "f") }},
		"some fields of hashes": {100, 45_000_000, func(v *keyspace.Handle, i int) error { return field(v, i, strconv.Itoa(i%5)) }},
	} {
		t.Run(name, func(t *testing.T) {
			ks, v, j, _ := journalled(t)
			v.LockAll()
			defer v.Unlock()
			for i := range change.times {
				require.False(t, v.Refuses())
				require.NoError(t, change.do(v, i))
				require.Less(t, ks.InHeap(), int64(50_000_000))
			}
			v.Unlock()
			require.Len(t, j.records, 1)
			require.Less(t, len(j.records[0]), change.most)
			again := keyspace.New(keyspace.Options{Clock: ks.Clock(), Shards: 4, Databases: 2})
			defer again.Close()
			j.replay(t, again, 0)
			requireSame(t, all(ks), all(again))
		})
	}
}

// requireSame compares long values as a whole and not byte by byte.
func requireSame(t *testing.T, want, got entries) {
	t.Helper()
	require.Len(t, got, len(want))
	for key, w := range want {
		g := got[key]
		require.True(t, g.Kind == w.Kind && g.Expiry == w.Expiry && bytes.Equal(g.Value, w.Value), "%q", key)
	}
}

// TestCondensedRecordIsWhatWasDone: replaying a record gives the state of the keyspace, whatever
// was done while keys were locked and however often the record was condensed.
func TestCondensedRecordIsWhatWasDone(t *testing.T) {
	effort.Alone(t)
	rng := rand.New(rand.NewPCG(1, 2))
	ks, v, j, _ := journalled(t)
	long := make([]byte, 3<<20)
	defer v.Unlock()
	for range 8 {
		v.LockAll()
		for range 60 {
			for range 20 {
				operate(v, rng)
			}
			key := []byte{byte('a' + rng.IntN(6))}
			_, err := v.SetString(rng.IntN(2), key, long[:rng.IntN(len(long))], keyspace.SetOptions{Expiry: entry.NoExpiry, KeepTTL: true})
			require.NoError(t, err)
			if rng.IntN(10) == 0 {
				v.Flush(rng.IntN(2))
			}
		}
		v.Unlock()
		require.Less(t, len(j.records[len(j.records)-1]), 40<<20)
	}
	again := keyspace.New(keyspace.Options{Clock: ks.Clock(), Shards: 4, Databases: 2})
	defer again.Close()
	j.replay(t, again, 0)
	requireSame(t, all(ks), all(again))
}
