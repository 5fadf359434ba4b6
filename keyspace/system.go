package keyspace

import "github.com/cellserver/cellserver/entry"

// System is the database of the server's own data, such as policies. Its number is above those of
// the databases for clients, whatever their number is. No client can select it, a flush does not
// empty it, no observer is notified of its changes, and of the statistics for clients only that of
// memory includes it. It is recorded, copied and replicated like the others.
const System = entry.SystemDatabase

// HasDatabase reports whether database db exists, for clients or for the server.
func (ks *Keyspace) HasDatabase(db int) bool { return db < ks.databases || db == System }

// ObserveSystem makes f be called for changes of [System] that no handle of a caller makes: those
// by [Keyspace.Restore], [Keyspace.Apply], [Keyspace.ApplyRecord] and [Keyspace.Empty]. An entry of
// kind [entry.None] means that the key is gone; a nil key means that all keys are gone. f runs with
// locks held: it must be quick, and must neither use the keyspace nor keep key or value.
// ObserveSystem must be called before the keyspace is used.
func (ks *Keyspace) ObserveSystem(f func(key []byte, e entry.Entry)) { ks.system = f }

// tellSystem calls the function of ObserveSystem, if there is one, for a key of db.
func (c *common) tellSystem(db int, key []byte, e entry.Entry) {
	if db == System && c.system != nil {
		c.system(key, e)
	}
}
