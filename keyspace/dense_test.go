package keyspace

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/limit"
)

// sameHash is the worst that can be: no two keys differ in their hash.
func sameHash([]byte) uint32 { return 0xdeadbeef }

func TestDenseRefusesWhatItCannotTellApart(t *testing.T) {
	f := newFixture(t, storages["dense"], sameHash)
	n := 0
	for f.insert(f.hash(nil), fmt.Append(nil, n), Entry{Kind: Cell, Expiry: 1, Value: nil}) {
		n++
		require.Less(t, n, 10_000)
	}
	require.Equal(t, segmentSlots-1, n, "a segment is filled to the last but one")
	require.Equal(t, n, f.len())
	for i := range n {
		r, e := f.get(fmt.Sprint(i))
		require.Equal(t, Cell, e.Kind)
		f.remove(r)
	}
	f.add(t, "again", Entry{Kind: Cell, Expiry: 1, Value: nil})
}

func TestDenseShrinks(t *testing.T) {
	f := newFixture(t, storages["dense"], goodHash)
	table := f.table.(*denseTable)
	empty := f.mem.used.Load()
	const n = 100_000
	for i := range n {
		f.add(t, fmt.Sprint(i), Entry{Kind: Cell, Expiry: 1, Value: nil})
	}
	require.InDelta(t, n/300, table.index.segments, n/300/3)
	for i := range n {
		r, _ := f.get(fmt.Sprint(i))
		f.remove(r)
	}
	require.Equal(t, 1, table.index.segments)
	require.Zero(t, table.index.depth)
	require.LessOrEqual(t, f.mem.used.Load(), empty+pageSize*8)
}

// TestDenseGoesBackAndForth adds and removes at every boundary, as a key does that
// comes and expires all the time: no memory is mapped and unmapped for that.
func TestDenseGoesBackAndForth(t *testing.T) {
	f := newFixture(t, storages["dense"], goodHash)
	for i := range 10_000 {
		f.add(t, fmt.Sprintf("%016d", i), Entry{Kind: Cell, Expiry: 1, Value: nil})
		before := f.mem.used.Load()
		for range 3 {
			r, _ := f.get(fmt.Sprintf("%016d", i))
			f.remove(r)
			require.Equal(t, before, f.mem.used.Load(), i)
			f.add(t, fmt.Sprintf("%016d", i), Entry{Kind: Cell, Expiry: 1, Value: nil})
		}
		require.Equal(t, before, f.mem.used.Load())
	}
}

func TestSizeClasses(t *testing.T) {
	require.Equal(t, uint32(recordHead), classes[1].size)
	require.Equal(t, uint32(maxInline), classes[numClasses-1].size)
	for size := recordHead; size <= maxInline; size++ {
		class := classOf(size)
		c := &classes[class]
		require.GreaterOrEqual(t, int(c.size), size)
		require.Less(t, int(c.size)-size, maxSlack)
		if size > recordHead {
			require.Less(t, int(classes[class-1].size), size, "the smallest that holds it")
		}
		require.LessOrEqual(t, c.per*c.size, uint32(chunkSize))
		require.LessOrEqual(t, int(c.size)-size, max(3, size/8), "little is wasted")
	}
	for class := uint32(1); class < numClasses; class++ {
		c := &classes[class]
		seen := uint32(0)
		for _, i := range []uint32{0, 1, c.per - 1, c.per, 5*c.per + 3} {
			number := c.number(class, i)
			require.Equal(t, class, number>>placeBits)
			require.True(t, i == 0 || number > seen)
			seen = number
		}
	}
}

// BenchmarkTable is the storage alone: find and store of random keys, and the pair
// of insert and remove.
func BenchmarkTable(b *testing.B) {
	for _, name := range []string{"dense", "map"} {
		for _, n := range []int{1000, 100_000, 1_000_000} {
			f := newFixture(b, storages[name], goodHash)
			var key [16]byte
			put := func(i int) { binary.LittleEndian.PutUint64(key[:], uint64(i)*0x9e3779b97f4a7c15) }
			for i := range n {
				put(i)
				f.insert(f.hash(key[:]), key[:], Entry{Kind: Cell, Expiry: 1, Value: nil})
			}
			b.Run(fmt.Sprintf("%s/update/keys=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					put(i * 7919 % n)
					r, k, _, v := f.find(f.hash(key[:]), key[:])
					f.store(r, Entry{Kind: k, Expiry: limit.Instant(i), Value: v})
				}
			})
			b.Run(fmt.Sprintf("%s/replace/keys=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					put(i * 7919 % n)
					h := f.hash(key[:])
					r, _, _, _ := f.find(h, key[:])
					f.remove(r)
					f.insert(h, key[:], Entry{Kind: Cell, Expiry: 1, Value: nil})
				}
			})
		}
	}
}
