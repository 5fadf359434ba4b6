package effect_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/ban"
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/effect"
)

// read returns the effects of a record.
func read(t *testing.T, r *effect.Record) (all []effect.Effect) {
	rest, _ := r.Parts()
	for len(rest) > 0 {
		e, after, err := effect.Next(rest)
		require.NoError(t, err)
		all, rest = append(all, e), after
	}
	return all
}

func TestEffectsAreReadAsTheyWereWritten(t *testing.T) {
	var r effect.Record
	require.True(t, r.Empty())
	value := entry.Entry{Kind: entry.String, Expiry: 7, Value: []byte("value")}
	r.Put(3, []byte("key"), &value)
	r.Patch(2, []byte("list"), entry.List, entry.NoExpiry, []byte("delta"))
	r.Remove(1, []byte("gone"))
	r.Flush(9)
	require.Equal(t, []effect.Effect{
		{DB: 3, Key: []byte("key"), Entry: value},
		{DB: 2, Key: []byte("list"), Entry: entry.Entry{Kind: entry.List, Expiry: entry.NoExpiry, Value: []byte("delta")}, Patch: true},
		{DB: 1, Key: []byte("gone")},
		{DB: 9, Flush: true},
	}, read(t, &r))
	r.Reset()
	require.True(t, r.Empty())
	require.Zero(t, r.Size())
}

func TestCutEffectsAreErrors(t *testing.T) {
	var r effect.Record
	for _, write := range []func(){
		func() { r.Put(3, []byte("key"), &entry.Entry{Kind: entry.String, Expiry: 7, Value: []byte("value")}) },
		func() { r.Patch(2, []byte("list"), entry.List, 1, []byte("delta")) },
		func() { r.Remove(1, []byte("gone")) },
		func() { r.Flush(9) },
	} {
		r.Reset()
		write()
		whole, _ := r.Parts()
		for n := range whole {
			_, _, err := effect.Next(whole[:n])
			require.Error(t, err, "%d of %x", n, whole)
		}
	}
}

// TestCondensingLeavesWhatLaterEffectsDoNotMakeVoid writes keys repeatedly.
func TestCondensingLeavesWhatLaterEffectsDoNotMakeVoid(t *testing.T) {
	put := func(r *effect.Record, db int, key, value string) {
		r.Put(db, []byte(key), &entry.Entry{Kind: entry.String, Expiry: entry.NoExpiry, Value: []byte(value)})
	}
	never := func(int, string) int { return math.MaxInt }
	var r effect.Record
	put(&r, 1, "flushed", "x")
	for i := range 100 {
		put(&r, 0, "a", fmt.Sprint(i))
		put(&r, 0, "b", fmt.Sprint(i))
	}
	r.Flush(1)
	put(&r, 1, "after", "x")
	r.Remove(0, []byte("b"))
	r.Condense(never, nil)
	var left []string
	for _, e := range read(t, &r) {
		left = append(left, fmt.Sprintf("%d %s=%s %v", e.DB, e.Key, e.Entry.Value, e.Flush))
	}
	require.Equal(t, []string{"0 a=99 false", "1 = true", "1 after=x false", "0 b= false"}, left)
}

// TestCondensingRecordsSmallCollectionsWhole makes patches that are longer than the collection.
func TestCondensingRecordsSmallCollectionsWhole(t *testing.T) {
	var h collection.Hash
	h.Max = 10
	h.Load(nil)
	_, err := h.Set([]byte("field"), []byte("value"))
	require.NoError(t, err)
	whole := entry.Entry{Kind: entry.Hash, Expiry: entry.NoExpiry, Value: h.AppendFlat(nil)}
	var r effect.Record
	for r.Size() < 4*effect.MaxRecord/64 {
		r.Patch(0, []byte("hash"), entry.Hash, entry.NoExpiry, make([]byte, 100_000))
	}
	r.Condense(func(int, string) int { return len(whole.Value) }, func(int, string) entry.Entry { return whole })
	require.Equal(t, []effect.Effect{{Key: []byte("hash"), Entry: whole}}, read(t, &r))
}

func TestCheckRefusesWhatNoKeyCanHold(t *testing.T) {
	for _, e := range []entry.Entry{
		{Kind: entry.Kinds},
		{Kind: 15},
		{Kind: entry.Ban},
		{Kind: entry.Ban, Value: bytes.Repeat([]byte{255}, ban.Length)},
		{Kind: entry.Ban | 8, Value: make([]byte, ban.Length)},
		{Kind: entry.Hash},
		{Kind: entry.List, Value: []byte{255}},
		{Kind: entry.Cell, Value: []byte("x")},
	} {
		require.Error(t, effect.CheckEntry(e), "kind %d", e.Kind)
	}
	require.NoError(t, effect.CheckEntry(entry.Entry{Kind: entry.Ban, Value: make([]byte, ban.Length)}))
	require.NoError(t, effect.CheckEntry(entry.Entry{Kind: entry.String}))
	require.NoError(t, effect.CheckEntry(entry.Entry{Kind: entry.Cell}))
	require.Error(t, effect.Check(effect.Effect{Patch: true, Entry: entry.Entry{Kind: entry.String}}), "strings are not patched")
	require.Error(t, effect.Check(effect.Effect{Patch: true, Entry: entry.Entry{Kind: entry.Set, Value: []byte{255}}}))
	require.NoError(t, effect.Check(effect.Effect{Flush: true}))
}
