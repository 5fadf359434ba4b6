// Package keyspace keeps what is known of every key: limiter states, plain
// strings, collections, their expiry, and the order in which commands touched them.
//
// A [Keyspace] is divided into shards by a seeded hash of the key; a shard is a
// mutex, the latest instant it has decided at, and one table per database. Each
// goroutine that runs commands has a [View], through which everything goes. A
// command on one key locks one shard and allocates nothing; [View.Hold] locks the
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
// What is not here: deciding (gcra, slidingwindow, tokenbucket, concurrency),
// elements (collection), rounding, replies and files.
package keyspace
