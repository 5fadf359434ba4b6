// Package keyspace stores the keys of a server in memory, with their expiry. The value of a key is
// the state of a limiter, a string or a collection. Commands on one key take effect one after
// another.
//
// A [Keyspace] is divided into shards by a seeded hash of the key. A shard consists of a mutex, one
// table per database, and the latest instant at which a command has used it. Each goroutine that
// runs commands has a [Handle], through which it uses the keyspace. A command on one key locks one
// shard. [Handle.Lock] locks the shards of several keys in ascending order of their indices. All
// that the handle does until [Handle.Unlock] happens at one instant. EXEC and scripts call Lock,
// and RL.MULTI locks its keys in the same way.
//
// The keyspace itself reads the clock (see [clock.Clock]): no caller passes "now". A key exists
// while its expiry is later than the instant of the command, compared in nanoseconds. A write
// overwrites an expired key. Otherwise [Keyspace.Sweep] removes the key, or, if the handle has an
// [Observer], the command that looks it up.
//
// Every change of a table is made in mutate.go, or for loaded and replicated entries in restore.go,
// under the lock of its shard, so that the changes of one key have one order for the journal, the
// watchers and all clients. The table interface in table.go hides how entries are stored. Large
// collections are stored as objects beside the table (tree.go); other packages cannot tell them
// from small ones.
//
// A file uses only files of its own layer and of lower layers. The lowest layer has the names of
// keys (refs.go), the interfaces and the state that all shards share (table.go, common.go,
// claims.go), and the types that are notified of changes (listeners.go). The next layer is the
// shard (shard.go, tree.go, mutate.go), which does not use handles. The layer above it has Keyspace
// and Handle (handle.go, keyspace.go), and the code with which a handle records, locks, claims and
// looks up keys (journal.go, lock.go, claim.go, locking.go, lookup.go). The top layer has the
// methods that callers use: for limiters and each kind of key, for waiting, sweeping, snapshots and
// loading, and for applying the records of another keyspace (replicate.go).
//
// This package neither computes the decisions of limiters (packages gcra, slidingwindow,
// tokenbucket and concurrency) nor implements collections (package collection). It writes neither
// replies nor files.
package keyspace
