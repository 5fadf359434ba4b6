// Package waiting has the queues of clients that wait for a key: for room in its limiter, or for
// elements of its value.
//
// The queues are data without a lock. The keyspace has them in its shards, and the lock of the shard
// of a key guards the queues of the key.
package waiting
