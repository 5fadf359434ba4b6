// Package rdb reads and writes the RDB format of Redis and Valkey. RDB is the format of the file
// that a server saves, and of the data that a primary sends to a replica for a full
// resynchronization.
//
// A [Reader] reads the format versions 6 to 13 of Redis (2.8 to 8) and version 80 of Valkey. It
// passes strings, lists, sets, hashes and sorted sets to a [Visitor], in the same form for all
// encodings, and skips streams, data of modules and functions. A [Writer] writes version 9 with
// encodings that every Redis since 5 and every Valkey reads.
//
// The package opens no file and no connection, and starts no goroutine. The caller decides whether
// keys have expired. The comments on the constants and on each encoding describe the format, as it
// is in rdb.c, listpack.c, ziplist.c, zipmap.c, intset.c and lzf_d.c of Redis.
package rdb
