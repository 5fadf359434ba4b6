package keyspace

import "github.com/cellserver/cellserver/limit"

// NoExpiry is the expiry of a key that lives until it is deleted. It is the last
// instant there is, so that "exists while expiry > now" needs no special case.
const NoExpiry = limit.MaxInstant

// Entry is what a key holds. The Kind of an absent key is [None].
type Entry struct {
	Kind Kind
	// made says that Value was made by shared.New for a table that is given the entry,
	// which may keep it and need not copy.
	made   bool
	Expiry limit.Instant
	Value  []byte
}

// table stores the entries of one shard in one database. All methods are called
// with the shard locked. It knows nothing of time: an entry that has expired is
// like any other.
//
// hash is the lower half of the key's 64-bit hash; the shard was chosen by the
// upper bits.
type table interface {
	// find returns where key is and what it holds, or kind None. The value is the
	// stored bytes themselves: it may be changed in place, extended within its
	// capacity and handed to store; it is void after the next insert, store or
	// remove. The parts of the entry are results of their own because they stay in
	// registers then.
	find(hash uint32, key []byte) (r ref, k Kind, expiry limit.Instant, value []byte)
	// insert adds key, which must be absent, copying key and value. It reports
	// whether there was room.
	insert(hash uint32, key []byte, e Entry) bool
	// store replaces all of an entry but its key. e.Value may be (a part of, or an
	// extension of) what find returned.
	store(r ref, e Entry)
	// remove takes an entry out; every ref is void afterwards.
	remove(r ref)
	// at returns the key and the entry at r. The key must not be changed.
	at(r ref) (key []byte, e Entry)
	// scan calls f for every entry of a part of the table and returns where the
	// next part begins, 0 after the last. It goes on until about count entries have
	// been seen. Whatever changes between two calls, an entry that was there
	// throughout is seen at least once. f must not change the table. Cursors stay
	// below 2^40.
	scan(cursor uint64, count int, f func(key []byte, e Entry)) (next uint64)
	// due looks at entries from position *pos on for one that expires at or before
	// now, and takes each that it looks at from *budget. It leaves *pos where the
	// search goes on once that entry has been removed: an entry that is there for a
	// whole round is looked at. At the end of a round *pos is 0 again, where a new
	// one begins.
	due(pos *uint64, budget *int, now limit.Instant) (ref, bool)
	// random returns one of the entries, chosen by x as evenly as the table can.
	// The table must not be empty.
	random(x uint64) ref
	// cost is how many bytes of memory the entry at r takes, its share of the
	// table's own structure included.
	cost(r ref) int64
	len() int
	// free gives all memory back. The table is not used again.
	free()
}

// ref is a position in a table, valid until the table's next insert or remove.
type ref uint64

// newTable makes an empty table that reports the memory it takes to m. hash is
// the keyspace's hash, for tables that have to find an entry again from its key.
type newTable func(m *Memory, hash func(key []byte) uint32) table
