// Package dense stores entries without pointers, so that the garbage collector has nothing to scan.
// An index has slots of eight bytes that lead to records. Records lie side by side in vectors by
// size. Long entries are stored beside them.
//
// A [Table] holds the keys of one shard and database. It takes its memory from an [Arena] and
// reports it to a [Memory]. It knows neither time nor locks: an expired entry is like any other,
// and the caller of a table has locked it. Only [Load] reads tables without a lock.
package dense
