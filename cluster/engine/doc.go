// Package engine talks to the Valkey or Redis that has the values: one node, nodes behind
// Sentinel, or a cluster. It reads values and swaps them, if nobody has written in between,
// for any number of goroutines at once, none of which waits.
//
// It knows bytes alone. What they mean is the business of package cluster.
package engine
