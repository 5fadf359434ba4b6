package dense

import "sync/atomic"

// Memory counts the bytes that tables take.
type Memory struct {
	used    atomic.Int64
	objects atomic.Int64 // the part of used that is always in Go's heap
}

// Add adds n bytes to the count.
func (m *Memory) Add(n int64) { m.used.Add(n) }

// AddObjects is Add for memory that is in Go's heap even if tables are not.
func (m *Memory) AddObjects(n int64) {
	m.used.Add(n)
	m.objects.Add(n)
}

// Count implements [shared.Ledger]: a removed value still takes memory while replies refer to it.
func (m *Memory) Count(bytes int64) { m.AddObjects(bytes) }

// Used returns the number of bytes.
func (m *Memory) Used() int64 { return m.used.Load() }

// Objects returns the number of those bytes that are always in Go's heap.
func (m *Memory) Objects() int64 { return m.objects.Load() }
