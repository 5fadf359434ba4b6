package keyspace

import (
	"github.com/cellserver/cellserver/internal/tabletest"
	"github.com/cellserver/cellserver/keyspace/dense"
)

// mapped is an arena that all tests share, so that they map little memory.
var mapped = dense.NewArena()

// storages are the implementations of table that the tests of the whole keyspace use.
var storages = map[string]newTable{
	"map":   func(m *dense.Memory, hash func([]byte) uint32) table { return tabletest.New(m, hash) },
	"dense": func(m *dense.Memory, hash func([]byte) uint32) table { return dense.New(mapped, m, hash) },
	// The same on Go's heap, where the race detector sees accesses, and as on other systems.
	"dense on the heap": func(m *dense.Memory, hash func([]byte) uint32) table {
		return dense.New(dense.NewHeapArena(), m, hash)
	},
}

// Storages returns the names of all storages.
func Storages() (names []string) {
	for name := range storages {
		names = append(names, name)
	}
	return names
}

// With returns o with the storage of that name.
func (o Options) With(storage string) Options {
	o.newTable = storages[storage]
	return o
}

// Seen returns the number of expired keys that the handle remembers.
func (v *Handle) Seen() int { return len(v.observed.seen) }

// ShardOf returns the index of the shard of key.
func (ks *Keyspace) ShardOf(key []byte) int { return int(ks.hash(key) >> ks.shift) }
