package collection_test

import (
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
)

// kind is a type of collection and the check of its bytes.
type kind struct {
	name  string
	fresh func() value
	check func([]byte) error
}

func kinds() []kind {
	return []kind{
		{"hash", func() value { return new(collection.Hash) }, collection.CheckHash},
		{"sorted set", func() value { return new(collection.SortedSet) }, collection.CheckSortedSet},
		{"list", func() value { return new(collection.List) }, collection.CheckList},
		{"set", func() value { return new(collection.Set) }, collection.CheckSet},
	}
}

// hostile returns bytes that announce more elements than they have.
func hostile() [][]byte {
	huge := binary.AppendUvarint(nil, 1<<62)
	header := append([]byte{1}, make([]byte, 16)...)
	far := append([]byte{1}, binary.LittleEndian.AppendUint64(make([]byte, 8), 1<<62)...)
	return [][]byte{
		huge,
		append([]byte{1}, huge...),
		append(append([]byte{2}, huge...), 'a'),
		append(make([]byte, 8), huge...),
		{1, 1, 'a', 1, 'b'},
		{1, 0x81, 0, 'a', 0},
		{2, 1, 'a', 0, 1, 'a', 0},
		{1, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f, 1, 'a'},
		{4, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f, 1, 'a'},
		{4, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 1, 'a', 3, 1, 'a'},
		{0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 'x'},
		{0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 2},
		header,
		append(header, 0, 1, 'x'),
		append(header[:9:9], 64, 0, 0, 0, 0, 0, 0, 0, 20, 1, 'x'),
		append(header[:9:9], 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0, 20, 1, 'x'),
		far,
	}
}

// use reads every element.
func use(v value) (elements int) {
	switch v := v.(type) {
	case *collection.Hash:
		for range v.All() {
			elements++
		}
	case *collection.SortedSet:
		for range v.RangeDown(0, v.Len()) {
			elements++
		}
	case *collection.List:
		for range v.Range(0, v.Len()) {
			elements++
		}
	case *collection.Set:
		for range v.All() {
			elements++
		}
	}
	return elements
}

// FuzzApply: either hostile bytes are refused and nothing has changed, or they are applied, and
// applying them twice gives the same as once.
func FuzzApply(f *testing.F) {
	for i := range kinds() {
		for _, b := range hostile() {
			f.Add(byte(i), []byte{}, b)
			f.Add(byte(i), b, []byte{3, 1, 'a'})
		}
	}
	f.Fuzz(func(t *testing.T, i byte, flat, delta []byte) {
		k := kinds()[int(i)%4]
		if k.check(flat) != nil {
			flat = nil
		}
		v := k.fresh()
		v.Load(flat)
		require.Equal(t, string(flat), string(v.AppendFlat(nil)))
		require.Equal(t, v.Len(), use(v))
		if err := v.Apply(delta); err != nil {
			require.ErrorIs(t, err, collection.ErrCorrupt)
			require.Equal(t, string(flat), string(v.AppendFlat(nil)))
			return
		}
		once := v.AppendFlat(nil)
		use(v)
		if l, ok := v.(*collection.List); !ok || l.Whole() {
			require.NoError(t, k.check(once))
		}
		again := k.fresh()
		again.Load(once)
		require.Equal(t, string(once), string(again.AppendFlat(nil)))
		require.NoError(t, again.Apply(delta))
		require.Equal(t, string(once), string(again.AppendFlat(nil)))
	})
}

// FuzzCheck: bytes that pass the check are bytes that a collection itself writes.
func FuzzCheck(f *testing.F) {
	for i := range kinds() {
		for _, b := range hostile() {
			f.Add(byte(i), b)
		}
	}
	f.Fuzz(func(t *testing.T, i byte, flat []byte) {
		k := kinds()[int(i)%4]
		if err := k.check(flat); err != nil {
			require.ErrorIs(t, err, collection.ErrCorrupt)
			return
		}
		v := k.fresh()
		v.Load(flat)
		require.Equal(t, v.Len(), use(v))
		require.Equal(t, string(flat), string(v.AppendFlat(nil)))
	})
}

// TestHostileBytesAllocateLittle: an announced number of elements reserves no memory for them.
func TestHostileBytesAllocateLittle(t *testing.T) {
	for _, k := range kinds() {
		for _, b := range hostile() {
			v := k.fresh()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_ = k.check(b)
			if v.Apply(b) == nil {
				use(v)
				v.AppendFlat(nil)
			}
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<10), "%s %x", k.name, b)
		}
	}
}
