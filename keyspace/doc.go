// Package keyspace keeps what is known of every key: limiter states, plain
// strings, collections, their expiry, and the order in which commands touched them.
//
// A [Keyspace] is divided into shards by a seeded hash of the key; a shard is a
// mutex, the latest instant it has decided at, and one table per database. Each
// goroutine that runs commands has a [Handle], through which everything goes. A
// command on one key locks one shard and allocates nothing; [Handle.Lock] locks the
// shards of several keys in index order and gives all that follows one instant,
// which is what RL.MULTI, EXEC and scripts are built on.
//
// The keyspace owns the clock (see [clock.Clock]): no caller passes "now". A key exists
// while its expiry lies after the instant, to the nanosecond; one that has expired
// is overwritten or removed when it is met, and found by [Keyspace.Sweep]
// otherwise.
//
// Every change of a table goes through mutate.go, under the lock of its shard, so
// that order per key is the order of truth. How entries are stored is behind the
// table interface in table.go. Large collections are objects beside it (tree.go), of
// which nobody outside hears.
//
// Files refer downwards. At the bottom are the names of keys (refs.go), the seams and what
// all shards have in common (table.go, common.go, claims.go), and who is told of changes
// (listeners.go). On these stands a shard (shard.go, tree.go, mutate.go), which knows no
// handle. Keyspace and Handle come next, then how a handle records, locks, claims, holds and
// looks up (journal.go, lock.go, claim.go, locking.go, lookup.go). At the top is what callers
// ask for: a file per family and per kind of key, waiting, sweeping, snapshots, loading, and
// following another keyspace (replicate.go).
//
// What is not here: deciding (gcra, slidingwindow, tokenbucket, concurrency),
// elements (collection), rounding, replies and files.
package keyspace
