package tracking

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/cellserver/cellserver/internal/effort"
)

// fullTable returns a table of so many keys, each of which one client has read.
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

// BenchmarkCollectionWithFullTable measures a collection of garbage in a process that has nothing
// but a full table: what the table costs all others, again and again.
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

// BenchmarkReadOfNewKeyWithFullTable measures what a read of a key that is not in the table costs
// when the table is full: an entry is added, and another goes.
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
