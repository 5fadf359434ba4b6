// Package dense stores entries without pointers, so that the garbage collector has nothing to scan.
// An index has slots of eight bytes that lead to records. Records of about the same size lie side
// by side in a vector. Entries that are too long for a record are stored in Go's heap.
//
// A [Table] holds the keys of one shard and database. A table takes its memory from an [Arena] and
// counts it in a [Memory]. It does not know the time: an expired entry is like any other. It has no
// lock: its caller prevents concurrent use. Only [Load] reads tables that other goroutines may be
// changing.
package dense
