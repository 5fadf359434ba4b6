package keyspace_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/limit"
)

// fillHash makes key a hash of n fields.
func fillHash(t testing.TB, v *keyspace.Handle, db int, key string, n int) {
	require.NoError(t, v.WriteHash(db, []byte(key), func(h *collection.Hash) error {
		for i := range n {
			if _, err := h.Set(fmt.Appendf(nil, "field:%06d", i), []byte("a value of some bytes")); err != nil {
				return err
			}
		}
		return nil
	}))
}

func fields(t testing.TB, v *keyspace.Handle, db int, key string) (n int) {
	_, err := v.ReadHash(db, []byte(key), func(h *collection.Hash) { n = h.Len() })
	require.NoError(t, err)
	return n
}

// sizes are those of a hash that is stored in the table and of one that is a tree.
var sizes = []int{5, 1000}

// However a large collection is deleted, its memory is freed, and the counts of keys stay right.
func TestDeletedCollectionsReleaseTheirMemory(t *testing.T) {
	ways := map[string]func(ks *keyspace.Keyspace, v *keyspace.Handle, advance func(time.Duration)){
		"DEL":      func(_ *keyspace.Keyspace, v *keyspace.Handle, _ func(time.Duration)) { v.Delete(1, []byte("k")) },
		"FLUSHDB":  func(_ *keyspace.Keyspace, v *keyspace.Handle, _ func(time.Duration)) { v.Flush(1) },
		"FLUSHALL": func(_ *keyspace.Keyspace, v *keyspace.Handle, _ func(time.Duration)) { v.FlushAll() },
		"SET": func(_ *keyspace.Keyspace, v *keyspace.Handle, _ func(time.Duration)) {
			_, _ = v.SetString(1, []byte("k"), []byte("v"), keyspace.SetOptions{Expiry: entry.NoExpiry})
			v.Delete(1, []byte("k"))
		},
		"RENAME over it": func(_ *keyspace.Keyspace, v *keyspace.Handle, _ func(time.Duration)) {
			_ = v.Put(1, []byte("other"), entry.String, nil, entry.NoExpiry)
			v.Rename(1, []byte("other"), []byte("k"), false)
			v.Delete(1, []byte("k"))
		},
		"EXPIRE and the sweep": func(ks *keyspace.Keyspace, v *keyspace.Handle, advance func(time.Duration)) {
			v.Expire(1, []byte("k"), v.Now().Add(time.Second), 0)
			advance(2 * time.Second)
			ks.Sweep(1 << 20)
		},
		"expiry and a new one": func(_ *keyspace.Keyspace, v *keyspace.Handle, advance func(time.Duration)) {
			v.Expire(1, []byte("k"), v.Now().Add(time.Second), 0)
			advance(2 * time.Second)
			v.Refresh()
			_ = v.WriteHash(1, []byte("k"), func(h *collection.Hash) error { _, err := h.Set([]byte("a"), nil); return err })
			v.Delete(1, []byte("k"))
		},
		"expiry and a large new one": func(_ *keyspace.Keyspace, v *keyspace.Handle, advance func(time.Duration)) {
			v.Expire(1, []byte("k"), v.Now().Add(time.Second), 0)
			advance(2 * time.Second)
			v.Refresh()
			_ = v.WriteSet(1, []byte("k"), func(s *collection.Set) error {
				for i := range 500 {
					_, _ = s.Add(fmt.Append(nil, i))
				}
				return nil
			})
			v.Delete(1, []byte("k"))
		},
		"the last field": func(_ *keyspace.Keyspace, v *keyspace.Handle, _ func(time.Duration)) {
			_ = v.WriteHash(1, []byte("k"), func(h *collection.Hash) error {
				for i := range 1000 {
					h.Delete(fmt.Appendf(nil, "field:%06d", i))
				}
				return nil
			})
		},
		"all but a few fields": func(_ *keyspace.Keyspace, v *keyspace.Handle, _ func(time.Duration)) {
			_ = v.WriteHash(1, []byte("k"), func(h *collection.Hash) error {
				for i := range 998 {
					h.Delete(fmt.Appendf(nil, "field:%06d", i))
				}
				return nil
			})
			v.Delete(1, []byte("k"))
		},
	}
	for name, way := range ways {
		for _, n := range sizes {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				ks, v, _, clock := journalled(t)
				// A small key stays in every shard, so that tables are not freed and made again.
				for i := range 100 {
					require.NoError(t, v.Put(1, fmt.Append(nil, "stays:", i), entry.String, []byte("v"), entry.NoExpiry))
				}
				before := ks.Stats()
				fillHash(t, v, 1, "k", n)
				require.Equal(t, n, fields(t, v, 1, "k"))
				used, _ := v.MemoryUsage(1, []byte("k"))
				if n > 100 {
					require.Greater(t, used, int64(n)*50)
					require.GreaterOrEqual(t, ks.Stats().Memory, before.Memory+used-1000)
				}
				require.Equal(t, 1, ks.Stats().Kinds[entry.Hash])
				way(ks, v, clock.Advance)
				require.False(t, v.Exists(1, []byte("k")))
				after := ks.Stats()
				require.Equal(t, [64]int{entry.String: after.Databases[1].Keys}, after.Kinds)
				// A page of a vector or a spare chunk may belong to the table itself.
				require.InDelta(t, before.Memory, after.Memory, 16<<10+float64(before.Memory))
				v.FlushAll()
				require.Zero(t, ks.Stats().Memory)
			})
		}
	}
}

// RENAME moves a collection of any size, to any shard, with its expiry.
func TestCollectionsAreRenamed(t *testing.T) {
	for _, n := range sizes {
		ks, v, j, _ := journalled(t)
		fillHash(t, v, 0, "k0", n)
		v.Expire(0, []byte("k0"), v.Now().Add(time.Hour), 0)
		fillHash(t, v, 0, "k3", 300)
		for i := range 10 {
			renamed, found := v.Rename(0, fmt.Append(nil, "k", i), fmt.Append(nil, "k", i+1), false)
			require.True(t, renamed && found)
			require.Equal(t, n, fields(t, v, 0, fmt.Sprint("k", i+1)))
			require.Zero(t, fields(t, v, 0, fmt.Sprint("k", i)))
		}
		_, has, _ := v.Expiry(0, []byte("k10"))
		require.True(t, has)
		require.Equal(t, 1, v.Len(0))
		again := keyspace.New(keyspace.Options{Clock: ks.Clock(), Databases: 2})
		j.replay(t, again, 0)
		require.Equal(t, all(ks), all(again))
		require.Equal(t, "hash", v.Kind(0, []byte("k10")).Type())
	}
}

// The replies about a collection do not depend on where it is stored.
func TestCollectionsAreShownWhole(t *testing.T) {
	for _, n := range sizes {
		_, v, _, _ := journalled(t)
		fillHash(t, v, 0, "k", n)
		e, ok := v.Load(0, []byte("k"))
		require.True(t, ok)
		require.Equal(t, entry.Hash, e.Kind)
		require.NoError(t, effect.CheckEntry(e))
		v.ScanEntries(0, 0, 10, func(key []byte, got entry.Entry) {
			require.Equal(t, "k", string(key))
			require.Equal(t, e.Kind, got.Kind)
			require.Equal(t, e.Value, got.Value)
		})
		v.Scan(0, 0, 10, func(_ []byte, k entry.Kind) { require.Equal(t, entry.Hash, k) })
		require.NoError(t, v.Put(0, []byte("copy"), e.Kind, e.Value, e.Expiry))
		copied, _ := v.Load(0, []byte("copy"))
		require.Equal(t, e, copied)
		key, ok := v.RandomKey(nil, 0)
		require.True(t, ok)
		require.Contains(t, []string{"k", "copy"}, string(key))
		shown := map[string]int64{}
		found, err := v.Describe(0, []byte("k"), nil, func(field, text string, number int64, isText bool) {
			shown[field+"="+text] = number
		})
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, int64(n), shown["length="])
		require.Contains(t, shown, "type=hash")
	}
}

func TestCollectionEncodings(t *testing.T) {
	_, v, _, _ := journalled(t)
	word := func(i int) []byte { return fmt.Append(nil, "w", i) }
	for _, c := range []struct {
		n          int
		z, set, in string
	}{
		{3, "listpack", "hashtable", "intset"},
		{128, "listpack", "hashtable", "intset"},
		{129, "skiplist", "hashtable", "intset"},
		{513, "skiplist", "hashtable", "hashtable"},
	} {
		v.FlushAll()
		require.NoError(t, v.WriteSortedSet(0, []byte("z"), func(z *collection.SortedSet) error {
			for i := range c.n {
				_, _ = z.Set(word(i), 1)
			}
			return nil
		}))
		for name, prefix := range map[string]string{"set": "w", "in": ""} {
			require.NoError(t, v.WriteSet(0, []byte(name), func(s *collection.Set) error {
				for i := range c.n {
					_, _ = s.Add(fmt.Append(nil, prefix, i))
				}
				return nil
			}))
		}
		require.NoError(t, v.WriteList(0, []byte("l"), func(l *collection.List) error { return l.PushBack(nil) }))
		for key, want := range map[string]string{"z": c.z, "set": c.set, "in": c.in, "l": "quicklist"} {
			got, ok := v.Encoding(0, []byte(key))
			require.True(t, ok)
			require.Equal(t, want, got, "%s of %d", key, c.n)
		}
	}
	fillHash(t, v, 0, "h", 512)
	got, _ := v.Encoding(0, []byte("h"))
	require.Equal(t, "listpack", got)
	fillHash(t, v, 0, "h", 513)
	got, _ = v.Encoding(0, []byte("h"))
	require.Equal(t, "hashtable", got)
}

// A key of one kind is an error to every command for another kind, in both directions.
func TestCollectionsOfWrongType(t *testing.T) {
	for _, n := range sizes {
		_, v, _, _ := journalled(t)
		fillHash(t, v, 0, "k", n)
		quota, err := gcra.NewQuota(3, 5, 60)
		require.NoError(t, err)
		_, err = asks.Throttle(v, 0, []byte("k"), &quota, 1)
		require.ErrorIs(t, err, limit.ErrWrongType)
		_, _, err = v.AppendString(nil, 0, []byte("k"))
		require.ErrorIs(t, err, limit.ErrWrongType)
		_, err = v.AddInt(0, []byte("k"), 1)
		require.ErrorIs(t, err, limit.ErrWrongType)
		_, err = asks.Multi(v, 0, []decide.Clause{{Key: []byte("k"), Quota: &quota, Quantity: 1}}, make([]limit.Decision, 1))
		require.ErrorIs(t, err, limit.ErrWrongType)
		_, err = v.ReadSet(0, []byte("k"), func(*collection.Set) { t.Fatal("called") })
		require.ErrorIs(t, err, limit.ErrWrongType)
		err = v.WriteSortedSet(0, []byte("k"), func(*collection.SortedSet) error { t.Fatal("called"); return nil })
		require.ErrorIs(t, err, limit.ErrWrongType)
		require.Equal(t, n, fields(t, v, 0, "k"))
	}
}

// A write that changes nothing has no effect, does not dirty watchers and makes no key. If the
// write of a small collection fails, it has not happened.
func TestWritesWithoutEffectNotifyNobody(t *testing.T) {
	for _, n := range sizes {
		_, v, j, _ := journalled(t)
		fillHash(t, v, 0, "k", n)
		records := len(j.records)
		var w keyspace.Watcher
		v.Watch(&w, 0, []byte("k"))
		v.Watch(&w, 0, []byte("absent"))
		for _, key := range []string{"k", "absent"} {
			require.NoError(t, v.WriteHash(0, []byte(key), func(h *collection.Hash) error { h.Delete([]byte("no")); return nil }))
		}
		require.False(t, v.Dirty(&w))
		require.Len(t, j.records, records)
		require.False(t, v.Exists(0, []byte("absent")))
		if n < 64 {
			oops := errors.New("oops")
			require.ErrorIs(t, v.WriteHash(0, []byte("k"), func(h *collection.Hash) error { h.Delete([]byte("field:000001")); return oops }), oops)
			require.Equal(t, n, fields(t, v, 0, "k"))
			require.False(t, v.Dirty(&w))
		}
		fillHash(t, v, 0, "k", 1)
		require.True(t, v.Dirty(&w))
		require.Len(t, j.records, records+1)
		require.Less(t, len(j.records[records]), 80, "one field is recorded, not the hash")
	}
}

// When memory is full nothing can grow, but everything can shrink.
func TestCollectionsWhenMemoryIsFull(t *testing.T) {
	for _, n := range sizes {
		ks, v, _, _ := journalled(t)
		fillHash(t, v, 0, "k", n)
		ks.SetMaxMemory(1)
		add := func(h *collection.Hash) error { _, err := h.Set([]byte("new"), []byte("v")); return err }
		require.ErrorIs(t, v.WriteHash(0, []byte("k"), add), limit.ErrFull)
		require.ErrorIs(t, v.WriteHash(0, []byte("other"), add), limit.ErrFull)
		require.False(t, v.Exists(0, []byte("other")))
		longer := func(h *collection.Hash) error {
			_, err := h.Set([]byte("field:000001"), make([]byte, 200))
			return err
		}
		require.ErrorIs(t, v.WriteHash(0, []byte("k"), longer), limit.ErrFull)
		require.Equal(t, n, fields(t, v, 0, "k"))
		require.NoError(t, v.WriteHash(0, []byte("k"), func(h *collection.Hash) error { h.Delete([]byte("field:000001")); return nil }))
		require.Equal(t, n-1, fields(t, v, 0, "k"))
		ks.SetMaxMemory(0)
		require.NoError(t, v.WriteHash(0, []byte("k"), add))
	}
}

// A collection gets no further element than the option says.
func TestCollectionsKeepToMaxElements(t *testing.T) {
	ks, v, _, _ := journalled(t)
	for _, n := range sizes {
		v.FlushAll()
		fillHash(t, v, 0, "k", n)
		ks.SetMaxElements(n)
		err := v.WriteHash(0, []byte("k"), func(h *collection.Hash) error { _, err := h.Set([]byte("new"), nil); return err })
		require.ErrorIs(t, err, collection.ErrFull)
		fillHash(t, v, 0, "k", n)
		ks.SetMaxElements(keyspace.DefaultMaxElements)
	}
}

// While the journal refuses, nothing is changed.
func TestCollectionsNotKept(t *testing.T) {
	for _, n := range sizes {
		ks, v, j, _ := journalled(t)
		fillHash(t, v, 0, "k", n)
		before := all(ks)
		j.refuses = true
		err := v.WriteHash(0, []byte("k"), func(h *collection.Hash) error { _, err := h.Set([]byte("new"), nil); return err })
		require.ErrorIs(t, err, limit.ErrNotKept)
		require.Equal(t, before, all(ks))
	}
}
