// Package decide applies the limiters to what keys hold: it chooses the algorithm that an
// [Ask] names, judges it against an entry at an instant, and says what to store.
//
// It is pure: the caller locks the entries, passes the instant and stores the effect. The callers are
// the keyspace, for keys in memory, and the cluster, for keys in an engine.
package decide
