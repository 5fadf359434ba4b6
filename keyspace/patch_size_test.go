package keyspace_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/slidingwindow"
)

// The record of one call does not grow with the size of the key's value, nor does that of a change
// of the expiry, and recording a limiter's patch allocates nothing.
func TestPatchesAreSmall(t *testing.T) {
	_, v, j, clock := journalled(t)
	window := &slidingwindow.Call{Mode: slidingwindow.Log, Limit: 1 << 20, Window: 24 * time.Hour, Quantity: 1, LogMaxEntries: 1 << 20}
	slots := &slidingwindow.Call{Mode: slidingwindow.Buckets, Limit: 1 << 40, Window: time.Hour, Quantity: 1, Slots: 360}
	lease := &concurrency.Call{Op: concurrency.Acquire, Limit: 1 << 17, Lease: time.Hour}
	n, members := 0, make([][]byte, 5000)
	for i := range members {
		members[i] = fmt.Append(nil, "member:", i)
	}
	logAsk := &decide.Ask{Key: []byte("log"), Family: decide.Window, Window: *window}
	bucketsAsk := &decide.Ask{Key: []byte("buckets"), Family: decide.Window, Window: *slots}
	leaseAsk := &decide.Ask{Key: []byte("lease"), Family: decide.Lease, Lease: *lease}
	calls := map[string]func(){
		"log":     func() { clock.Advance(time.Millisecond); v.Refresh(); v.Decide(logAsk) },
		"buckets": func() { clock.Advance(time.Second); v.Refresh(); v.Decide(bucketsAsk) },
		"lease": func() {
			n++
			leaseAsk.Lease.Member = members[n%len(members)]
			v.Decide(leaseAsk)
		},
	}
	collections := map[string]func(){
		"hash": func() {
			_ = v.WriteHash(0, []byte("hash"), func(h *collection.Hash) error { n++; _, err := h.Set(fmt.Append(nil, n), nil); return err })
		},
		"zset": func() {
			_ = v.WriteSortedSet(0, []byte("zset"), func(z *collection.SortedSet) error { n++; _, err := z.Set(fmt.Append(nil, n), float64(n)); return err })
		},
		"list": func() {
			_ = v.WriteList(0, []byte("list"), func(l *collection.List) error { n++; return l.PushBack(fmt.Append(nil, n)) })
		},
		"queue": func() {
			_ = v.WriteList(0, []byte("list"), func(l *collection.List) error { l.PopFront(); return nil })
		},
		"set": func() {
			_ = v.WriteSet(0, []byte("set"), func(s *collection.Set) error { n++; _, err := s.Add(fmt.Append(nil, n)); return err })
		},
	}
	small := func(name string) {
		require.NotEmpty(t, j.records, name)
		for _, r := range j.records {
			require.Less(t, len(r), 80, name)
		}
		j.records = nil
	}
	for name, call := range calls {
		j.blind = true
		for range 10_000 {
			call()
		}
		require.Zero(t, testing.AllocsPerRun(1000, call), name)
		j.blind = false
		for range 100 {
			call()
		}
		small(name)
		require.True(t, v.Expire(0, []byte(name), v.Now().Add(48*time.Hour), 0))
		small(name)
	}
	// In this order, since the queue takes elements of the list.
	for _, name := range slices.Sorted(maps.Keys(collections)) {
		call := collections[name]
		for range 2000 {
			call()
		}
		j.records = nil
		for range 100 {
			call()
		}
		small(name)
	}
}

// FuzzPatch replays arbitrary patches on every kind of value: a patch is refused or leaves a valid
// value, and takes no memory that its bytes do not account for.
func FuzzPatch(f *testing.F) {
	for k := range entry.Kind(64) {
		for _, value := range [][]byte{nil, {1, 1, 'f', 1, 'v'}, {1, 12, 0, 0, 0, 0, 0, 0, 0, 11, 3}, {4, 0, 0, 0, 0, 0, 0, 0, 0, 1, 'm'}} {
			f.Add(byte(k), value)
		}
	}
	f.Add(byte(entry.List), []byte("\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x40\x00\x00\x00\x00\x00\x01v"))
	ks := keyspace.New(keyspace.Options{Clock: clocktest.New(t0), Shards: 1})
	v := ks.NewHandle()
	f.Fuzz(func(t *testing.T, kind byte, delta []byte) {
		v.FlushAll()
		fillKinds(t, v)
		before := ks.Stats().Memory
		record := []byte{66, 0, 1, 'k', kind, 0, 0, 0, 0, 0, 0, 0, 0x7f, byte(len(delta)), byte(len(delta) >> 8)}
		record = append(record[:13], appendCounted(nil, delta)...)
		for _, key := range []string{"k", "h", "z", "l", "s", "H", "Z", "L", "S", "w", "b", "c"} {
			record[3] = key[0]
			e, rest, err := effect.Next(record)
			if err != nil {
				return
			}
			require.Empty(t, rest)
			require.True(t, e.Patch)
			checked := effect.Check(e)
			err = ks.Apply(e)
			if checked != nil {
				require.Error(t, err)
			}
		}
		require.Less(t, ks.Stats().Memory, before+int64(len(delta))*12*200+(1<<20))
		v.ScanEntries(0, 0, 1000, func(key []byte, e entry.Entry) {
			if e.Kind != entry.List { // a list may have holes
				require.NoError(t, effect.CheckEntry(e), "%q", key)
			}
		})
	})
}

func appendCounted(dst, b []byte) []byte {
	n := uint64(len(b))
	for ; n >= 0x80; n >>= 7 {
		dst = append(dst, byte(n)|0x80)
	}
	return append(append(dst, byte(n)), b...)
}

// fillKinds makes keys of every kind that has patches, small and large.
func fillKinds(t testing.TB, v *keyspace.Handle) {
	for name, n := range map[string]int{"h": 3, "H": 100} {
		fillHash(t, v, 0, name, n)
	}
	for i, n := range []int{3, 100} {
		require.NoError(t, v.WriteSortedSet(0, []byte{"zZ"[i]}, func(z *collection.SortedSet) error {
			for m := range n {
				_, _ = z.Set(fmt.Append(nil, m), float64(m))
			}
			return nil
		}))
		require.NoError(t, v.WriteList(0, []byte{"lL"[i]}, func(l *collection.List) error {
			for m := range n {
				_ = l.PushBack(fmt.Append(nil, m))
			}
			return nil
		}))
		require.NoError(t, v.WriteSet(0, []byte{"sS"[i]}, func(s *collection.Set) error {
			for m := range n {
				_, _ = s.Add(fmt.Append(nil, m))
			}
			return nil
		}))
	}
	_, err := asks.Allow(v, 0, []byte("w"), &slidingwindow.Call{Mode: slidingwindow.Log, Limit: 9, Window: time.Hour, Quantity: 1})
	require.NoError(t, err)
	_, err = asks.Allow(v, 0, []byte("b"), &slidingwindow.Call{Mode: slidingwindow.Buckets, Limit: 9, Window: time.Hour, Quantity: 1, Slots: 12})
	require.NoError(t, err)
	_, err = asks.Lease(v, 0, []byte("c"), &concurrency.Call{Op: concurrency.Acquire, Limit: 9, Lease: time.Hour, Member: []byte("m")})
	require.NoError(t, err)
}
