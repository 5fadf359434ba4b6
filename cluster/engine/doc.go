// Package engine is the client of the Valkey or Redis that stores the values of a cluster. That is
// a single node, nodes behind Sentinel, or a cluster. The client reads values, and swaps a value if
// no other client has written it since the read. Any number of goroutines may use it, and no method
// blocks.
//
// It treats values as bytes. Package cluster encodes and decodes them.
package engine
