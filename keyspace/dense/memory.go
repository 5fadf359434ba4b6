package dense

import "sync/atomic"

// Memory counts the bytes that tables take. Any goroutine may use it. The zero value has counted
// nothing.
type Memory struct {
	used    atomic.Int64
	objects atomic.Int64 // part of used, in bytes, that is in Go's heap even if tables are not
}

// Add adds n bytes, which may be negative, to the count.
func (m *Memory) Add(n int64) { m.used.Add(n) }

// AddObjects does what Add does, for memory that is in Go's heap even if tables are outside of it.
func (m *Memory) AddObjects(n int64) {
	m.used.Add(n)
	m.objects.Add(n)
}

// Count implements [shared.Ledger] by AddObjects. A removed value still counts while replies refer
// to it.
func (m *Memory) Count(bytes int64) { m.AddObjects(bytes) }

// Used returns the number of bytes that are counted.
func (m *Memory) Used() int64 { return m.used.Load() }

// Objects returns the part of [Memory.Used] that is in Go's heap even if tables are outside of it.
func (m *Memory) Objects() int64 { return m.objects.Load() }
