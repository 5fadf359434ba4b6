// Package decide applies limiters to the values of keys. It chooses the algorithm of an [Ask],
// decides the ask on an entry at an instant, and returns a [Plan] with the change to store.
//
// The package has no state, no clock and no lock: the caller locks the entries, passes the instant
// and stores the effect. The callers are package keyspace, for keys in memory, and package remote,
// for keys in an engine.
package decide
