package keyspace

import "github.com/cellserver/cellserver/entry"

// System is the database of what the server keeps for itself, such as policies: behind those
// of clients, however many of these there are. No client can select it, a flush leaves it, no
// observer is told of it, and no statistic but that of memory counts it. It is recorded, copied
// and replicated as the others are.
const System = entry.SystemDatabase

// HasDatabase reports whether there is a database of that number, for clients or for the server.
func (ks *Keyspace) HasDatabase(db int) bool { return db < ks.databases || db == System }

// ObserveSystem has f told what becomes of [System] where no handle of a caller changes it: by
// [Keyspace.Restore], [Keyspace.Apply], [Keyspace.ApplyRecord] and [Keyspace.Empty]. An entry of
// kind [entry.None] is that of a key which is gone; a nil key says that all are. f runs with
// locks held, so it must be quick and must not use the keyspace; it may keep neither key nor
// value. It is set before the keyspace is used.
func (ks *Keyspace) ObserveSystem(f func(key []byte, e entry.Entry)) { ks.system = f }

// tellSystem tells who observes [System], if there is somebody, of a key of db.
func (c *common) tellSystem(db int, key []byte, e entry.Entry) {
	if db == System && c.system != nil {
		c.system(key, e)
	}
}
