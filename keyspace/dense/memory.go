package dense

import "sync/atomic"

// Memory counts the bytes that tables take.
type Memory struct {
	used    atomic.Int64
	objects atomic.Int64 // of used, what is always in Go's heap
}

// Add counts n bytes more.
func (m *Memory) Add(n int64) { m.used.Add(n) }

// AddObjects is Add for what is in Go's heap even where tables are not.
func (m *Memory) AddObjects(n int64) {
	m.used.Add(n)
	m.objects.Add(n)
}

// Count implements [shared.Ledger]: values that are gone but that replies refer to are
// memory all the same.
func (m *Memory) Count(bytes int64) { m.AddObjects(bytes) }

// Used is how many bytes there are.
func (m *Memory) Used() int64 { return m.used.Load() }

// Objects is how many of them are always in Go's heap.
func (m *Memory) Objects() int64 { return m.objects.Load() }
