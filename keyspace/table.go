package keyspace

import (
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/dense"
	"github.com/cellserver/cellserver/limit"
)

// table stores the entries of one shard in one database, as [dense.Table] does; tests have another
// implementation. All methods are called with the shard locked. A table does not know the time: an
// expired entry is like any other.
//
// hash is the lower half of the key's 64-bit hash; the shard was chosen by the
// upper bits.
type table interface {
	// Find returns where key is stored, and its entry, or kind None. value is the stored memory
	// itself: it may be changed in place, extended within its capacity and passed to Store. It is
	// invalid after the next Insert, Store or Remove. The parts of the entry are separate results
	// so that they stay in registers.
	Find(hash uint32, key []byte) (r dense.Ref, k entry.Kind, expiry limit.Instant, value []byte)
	// Insert adds key, which must be absent, and copies key and value. It reports whether there was
	// room.
	Insert(hash uint32, key []byte, e entry.Entry) bool
	// Store replaces an entry except for its key. e.Value may be what Find returned, a part of it
	// or an extension of it.
	Store(r dense.Ref, e entry.Entry)
	// Remove removes an entry. Every [dense.Ref] is invalid afterwards.
	Remove(r dense.Ref)
	// At returns the key and the entry at r. The key must not be changed.
	At(r dense.Ref) (key []byte, e entry.Entry)
	// Scan calls f for every entry of a part of the table, about count of them, and returns the
	// cursor of the next part, or 0 after the last. An entry that exists during the whole scan is
	// seen at least once, whatever changes between two calls. f must not change the table. Cursors
	// stay below 2^40.
	Scan(cursor uint64, count int, f func(key []byte, e entry.Entry)) (next uint64)
	// Due examines entries from position *pos on until it finds one that expires at or before now,
	// and subtracts their number from *budget. It leaves *pos where the search continues once that
	// entry has been removed, so that an entry which exists during a whole round is examined. At
	// the end of a round *pos is 0, where the next round begins.
	Due(pos *uint64, budget *int, now limit.Instant) (dense.Ref, bool)
	// Random returns one of the entries, chosen by x as evenly as the table can.
	// The table must not be empty.
	Random(x uint64) dense.Ref
	// Cost returns the number of bytes that the entry at r takes, including its share of the
	// table's own structure.
	Cost(r dense.Ref) int64
	Len() int
	// Free frees all memory. The table must not be used afterwards.
	Free()
}

// newTable makes an empty table that reports the memory it takes to m. hash is
// the keyspace's hash, for tables that have to find an entry again from its key.
type newTable func(m *dense.Memory, hash func(key []byte) uint32) table
