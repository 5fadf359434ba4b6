// Package decide applies the limiters to what keys hold: it chooses the algorithm that an
// [Ask] names, judges it against an entry at an instant, and says what to store.
//
// It is pure: whoever has the entries locks them, knows the instant and stores the effect.
// The keyspace does so in memory, and the cluster in an engine.
package decide
