package tracking

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/cellserver/cellserver/internal/effort"
)

// fullTable returns a table with the given number of keys, each read by one client.
func fullTable(keys int) *readTable {
	t := new(readTable)
	t.init(func(int64) bool { return true })
	var key []byte
	for i := range keys {
		key = strconv.AppendInt(append(key[:0], "user:session:"...), int64(i), 10)
		t.add(key, 1+int64(i%100), 1)
	}
	return t
}

// fullTableKeys is the default of tracking-table-max-keys.
const fullTableKeys = 1_000_000

// BenchmarkCollectionWithFullTable measures a garbage collection in a process that holds little
// but a full table: the cost that the table adds to each collection.
func BenchmarkCollectionWithFullTable(b *testing.B) {
	t := fullTable(fullTableKeys)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	cpu := effort.CPU()
	for b.Loop() {
		runtime.GC()
	}
	b.ReportMetric(float64((effort.CPU()-cpu).Microseconds())/float64(b.N)/1000, "cpu-ms/op")
	b.ReportMetric(float64(m.HeapAlloc)/fullTableKeys, "heap-B/key")
	b.ReportMetric(float64(t.memory.Load())/fullTableKeys, "counted-B/key")
	runtime.KeepAlive(t)
}

// BenchmarkReadOfNewKeyWithFullTable measures the read of a key that is not in the full table:
// one entry is added and another evicted.
func BenchmarkReadOfNewKeyWithFullTable(b *testing.B) {
	t := fullTable(fullTableKeys)
	var key []byte
	i := fullTableKeys
	b.ReportAllocs()
	cpu := effort.CPU()
	for b.Loop() {
		key = strconv.AppendInt(append(key[:0], "user:session:"...), int64(i), 10)
		t.add(key, 1, 1)
		t.forget(t.draw(0))
		i++
	}
	b.ReportMetric(float64((effort.CPU()-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
}
