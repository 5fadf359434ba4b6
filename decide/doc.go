// Package decide applies limiters to the values of keys. It chooses the algorithm that an [Ask]
// names, decides the ask on an entry at an instant, and returns what to store.
//
// The package has no state, no clock and no lock: the caller locks the entries, passes the instant
// and stores the effect. The callers are package keyspace, for keys in memory, and package cluster,
// for keys in an engine.
package decide
