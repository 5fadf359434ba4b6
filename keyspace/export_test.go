package keyspace

import (
	"github.com/cellserver/cellserver/internal/tabletest"
	"github.com/cellserver/cellserver/keyspace/dense"
)

// mapped is an arena for all tests, so that they map little.
var mapped = dense.NewArena()

// storages are the tables that the tests of the whole keyspace run over.
var storages = map[string]newTable{
	"map":   func(m *dense.Memory, hash func([]byte) uint32) table { return tabletest.New(m, hash) },
	"dense": func(m *dense.Memory, hash func([]byte) uint32) table { return dense.New(mapped, m, hash) },
	// The same on Go's heap, which the race detector sees and other systems use.
	"dense on the heap": func(m *dense.Memory, hash func([]byte) uint32) table {
		return dense.New(dense.NewHeapArena(), m, hash)
	},
}

// Storages are the names of all kinds of storage there are.
func Storages() (names []string) {
	for name := range storages {
		names = append(names, name)
	}
	return names
}

// With returns o with that kind of storage.
func (o Options) With(storage string) Options {
	o.newTable = storages[storage]
	return o
}

// Seen is how many keys the handle remembers to have seen expired.
func (v *Handle) Seen() int { return len(v.observed.seen) }

// ShardOf is which shard key lies in.
func (ks *Keyspace) ShardOf(key []byte) int { return int(ks.hash(key) >> ks.shift) }
