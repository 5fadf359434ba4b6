package keyspace

import (
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/dense"
	"github.com/cellserver/cellserver/limit"
)

// table stores the entries of one shard in one database. [dense.Table] implements it; tests have
// another implementation. All methods are called with the shard locked. A table does not know the
// time: it treats an expired entry like any other.
//
// In all methods, hash is the lower half of the key's 64-bit hash. The upper bits have chosen the
// shard.
type table interface {
	// Find returns a reference to the entry of key, and the entry's kind, expiry and value. The
	// kind is None if there is no entry. value is the stored memory itself: the caller may change
	// it in place, extend it within its capacity and pass it to Store. value is invalid after the
	// next Insert, Store or Remove. The parts of the entry are separate results so that they stay
	// in registers.
	Find(hash uint32, key []byte) (r dense.Ref, k entry.Kind, expiry limit.Instant, value []byte)
	// Insert adds key, which must be absent, with entry e. It copies key and, unless e.Made is set,
	// the value. It returns false and changes nothing if the table has no room.
	Insert(hash uint32, key []byte, e entry.Entry) bool
	// Store replaces the entry at r by e. The key stays. e.Value may be the value that Find
	// returned, a part of it or an extension of it.
	Store(r dense.Ref, e entry.Entry)
	// Remove removes the entry at r. Every [dense.Ref] of the table is invalid afterwards.
	Remove(r dense.Ref)
	// At returns the key and the entry at r. The caller must not change key. key and the value of e
	// are invalid after the next Insert, Store or Remove.
	At(r dense.Ref) (key []byte, e entry.Entry)
	// Scan calls f for every entry of the part of the table at cursor, which has about count
	// entries. It returns the cursor of the next part, or 0 after the last. The cursor of the first
	// part is 0. An entry that exists during the whole scan is passed to f at least once, whatever
	// changes between two calls. f must not change the table. Cursors stay below 2^40.
	Scan(cursor uint64, count int, f func(key []byte, e entry.Entry)) (next uint64)
	// Due examines entries from position *pos on, until it finds one that expires at or before now
	// and returns a reference to it. It returns false at the end of a round, or if *budget is 0.
	// Due subtracts the number of examined entries from *budget. It sets *pos to the position at
	// which the search continues once the returned entry has been removed. An entry that exists
	// during a whole round is examined. At the end of a round *pos is 0, and the next round begins
	// there.
	Due(pos *uint64, budget *int, now limit.Instant) (dense.Ref, bool)
	// Random returns a reference to an entry that x chooses, with about the same probability for
	// all entries. The table must not be empty.
	Random(x uint64) dense.Ref
	// Cost returns the number of bytes that the entry at r takes, including a share of the table's
	// own structure.
	Cost(r dense.Ref) int64
	// Len returns the number of entries.
	Len() int
	// Free frees all memory of the table, which must not be used afterwards.
	Free()
}

// newTable makes an empty table. The table reports the memory that it takes to m. hash returns the
// lower half of the keyspace's hash of key; the table needs it when it moves an entry.
type newTable func(m *dense.Memory, hash func(key []byte) uint32) table
