package dense

import (
	"fmt"
	"hash/maphash"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
)

// sameHash is the worst case: all keys have the same hash.
func sameHash([]byte) uint32 { return 0xdeadbeef }

// newTestTable makes a table, and frees it when the test ends.
func newTestTable(t testing.TB, hash func(key []byte) uint32) (*Table, *Memory) {
	m := new(Memory)
	table := New(NewArena(), m, hash)
	t.Cleanup(func() {
		table.Free()
		require.Zero(t, m.Used(), "free gives all memory back")
		table.arena.Close()
	})
	return table, m
}

// lookup returns the place and the kind of a key, which must exist.
func lookup(t testing.TB, table *Table, key string) (Ref, entry.Kind) {
	r, k, _, _ := table.Find(table.hash([]byte(key)), []byte(key))
	require.NotEqual(t, entry.None, k, key)
	return r, k
}

// addCell adds a key without a value.
func addCell(t testing.TB, table *Table, key string) {
	require.True(t, table.Insert(table.hash([]byte(key)), []byte(key), entry.Entry{Kind: entry.Cell, Expiry: 1}), key)
}

var seed = maphash.MakeSeed()

func seeded(key []byte) uint32 { return uint32(maphash.Bytes(seed, key)) }

func TestDenseRefusesWhatItCannotTellApart(t *testing.T) {
	table, _ := newTestTable(t, sameHash)
	n := 0
	for table.Insert(sameHash(nil), fmt.Append(nil, n), entry.Entry{Kind: entry.Cell, Expiry: 1}) {
		n++
		require.Less(t, n, 10_000)
	}
	require.Equal(t, segmentSlots-1, n, "a segment is filled to the last but one")
	require.Equal(t, n, table.Len())
	for i := range n {
		r, kind := lookup(t, table, fmt.Sprint(i))
		require.Equal(t, entry.Cell, kind)
		table.Remove(r)
	}
	addCell(t, table, "again")
}

func TestDenseShrinks(t *testing.T) {
	table, mem := newTestTable(t, seeded)
	empty := mem.Used()
	const n = 100_000
	for i := range n {
		addCell(t, table, fmt.Sprint(i))
	}
	require.InDelta(t, n/300, table.index.segments, n/300/3)
	for i := range n {
		r, _ := lookup(t, table, fmt.Sprint(i))
		table.Remove(r)
	}
	require.Equal(t, 1, table.index.segments)
	require.Zero(t, table.index.depth)
	require.LessOrEqual(t, mem.Used(), empty+pageSize*8)
}

// TestTableKeepsItsMemoryWhenKeysComeAndGo adds and removes a key at every boundary, like a key
// that is created and expires all the time. That must not map and unmap memory each time.
func TestTableKeepsItsMemoryWhenKeysComeAndGo(t *testing.T) {
	table, mem := newTestTable(t, seeded)
	for i := range 10_000 {
		addCell(t, table, fmt.Sprintf("%016d", i))
		before := mem.Used()
		for range 3 {
			r, _ := lookup(t, table, fmt.Sprintf("%016d", i))
			table.Remove(r)
			require.Equal(t, before, mem.Used(), i)
			addCell(t, table, fmt.Sprintf("%016d", i))
		}
		require.Equal(t, before, mem.Used())
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
