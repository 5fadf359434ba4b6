// Package rdb reads and writes the RDB format of Redis and Valkey: the file that a server
// saves, and what a primary sends to a replica that needs everything.
//
// A [Reader] reads versions 6 to 13 of Redis (2.8 to 8) and version 80 of Valkey. It hands
// strings, lists, sets, hashes and sorted sets to a [Visitor], whatever their encoding was,
// and passes over streams, modules and functions. A [Writer] writes version 9 with the
// encodings that every Redis since 5 and every Valkey reads.
//
// The package opens no file and no connection, and starts no goroutine. What a key means,
// and whether it has expired, is decided by the caller. The format is described in the
// comments of the constants and of each encoding; the bytes are those of rdb.c, listpack.c,
// ziplist.c, zipmap.c, intset.c and lzf_d.c of Redis.
package rdb
