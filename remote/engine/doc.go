// Package engine is the client of the Valkey or Redis that stores the values of package remote.
// That server is a single node, a master behind Sentinels, or a cluster. The client reads values,
// and swaps a value if no other client has written it since the read. Any number of goroutines may
// use an [Engine], and no method except Close blocks.
//
// The client treats values as bytes. Package remote encodes and decodes them.
package engine
