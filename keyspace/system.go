package keyspace

import "github.com/cellserver/cellserver/entry"

// System is the number of the database of the server's own data, such as policies. It is above the
// numbers of the databases for clients, however many there are. No client can select System,
// FLUSHALL does not empty it, and no observer is notified of its changes. In the statistics for
// clients, only the number of bytes of memory includes this database. Its changes are recorded,
// copied into snapshots and replicated like the keys of the other databases.
const System = entry.SystemDatabase

// HasDatabase reports whether db is one of the databases for clients, or [System].
func (ks *Keyspace) HasDatabase(db int) bool { return db < ks.databases || db == System }

// ObserveSystem makes f the function that is called for those changes of [System] that no handle of
// a caller makes: the changes by [Keyspace.Restore], [Keyspace.Apply], [Keyspace.ApplyRecord] and
// [Keyspace.Empty]. If e is of kind [entry.None], key was removed; if key is nil, all keys were
// removed. f is called with shards locked: it must be quick, and must neither use the keyspace nor
// keep key or the value of e. ObserveSystem must be called before the keyspace is used.
func (ks *Keyspace) ObserveSystem(f func(key []byte, e entry.Entry)) { ks.system = f }

// tellSystem calls the function of ObserveSystem for a change of key to e, if db is System and
// there is such a function.
func (c *common) tellSystem(db int, key []byte, e entry.Entry) {
	if db == System && c.system != nil {
		c.system(key, e)
	}
}
