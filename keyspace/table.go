package keyspace

import (
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/dense"
	"github.com/cellserver/cellserver/limit"
)

// table stores the entries of one shard in one database, as [dense.Table] does; tests
// have another. All methods are called with the shard locked. It knows nothing of time:
// an entry that has expired is like any other.
//
// hash is the lower half of the key's 64-bit hash; the shard was chosen by the
// upper bits.
type table interface {
	// Find returns where key is and what it holds, or kind None. The value is the
	// stored bytes themselves: it may be changed in place, extended within its
	// capacity and handed to Store; it is void after the next Insert, Store or
	// Remove. The parts of the entry are results of their own because they stay in
	// registers then.
	Find(hash uint32, key []byte) (r dense.Ref, k entry.Kind, expiry limit.Instant, value []byte)
	// Insert adds key, which must be absent, copying key and value. It reports
	// whether there was room.
	Insert(hash uint32, key []byte, e entry.Entry) bool
	// Store replaces all of an entry but its key. e.Value may be (a part of, or an
	// extension of) what Find returned.
	Store(r dense.Ref, e entry.Entry)
	// Remove takes an entry out; every [dense.Ref] is void afterwards.
	Remove(r dense.Ref)
	// At returns the key and the entry at r. The key must not be changed.
	At(r dense.Ref) (key []byte, e entry.Entry)
	// Scan calls f for every entry of a part of the table and returns where the
	// next part begins, 0 after the last. It goes on until about count entries have
	// been seen. Whatever changes between two calls, an entry that was there
	// throughout is seen at least once. f must not change the table. Cursors stay
	// below 2^40.
	Scan(cursor uint64, count int, f func(key []byte, e entry.Entry)) (next uint64)
	// Due looks at entries from position *pos on for one that expires at or before
	// now, and takes each that it looks at from *budget. It leaves *pos where the
	// search goes on once that entry has been removed: an entry that is there for a
	// whole round is looked at. At the end of a round *pos is 0 again, where a new
	// one begins.
	Due(pos *uint64, budget *int, now limit.Instant) (dense.Ref, bool)
	// Random returns one of the entries, chosen by x as evenly as the table can.
	// The table must not be empty.
	Random(x uint64) dense.Ref
	// Cost is how many bytes of memory the entry at r takes, its share of the
	// table's own structure included.
	Cost(r dense.Ref) int64
	Len() int
	// Free gives all memory back. The table is not used again.
	Free()
}

// newTable makes an empty table that reports the memory it takes to m. hash is
// the keyspace's hash, for tables that have to find an entry again from its key.
type newTable func(m *dense.Memory, hash func(key []byte) uint32) table
