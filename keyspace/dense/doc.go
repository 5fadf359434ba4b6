// Package dense stores entries without pointers, so that the garbage collector has nothing
// to look at however many keys there are: an index of eight bytes a slot over records that
// lie side by side in vectors by size, and what is long beside them.
//
// A [Table] holds the keys of one shard and database. It takes its memory from an [Arena]
// and tells a [Memory] what it takes. It knows neither time nor locks: an entry that has
// expired is like any other, and whoever uses a table has locked it. [Load] alone looks
// into tables without a lock.
package dense
