// Package redis replicates from and to a Redis or Valkey by their own protocol.
//
// A [Follower] is a replica of a live Redis (5 or newer) or Valkey, with or without
// redis-cell: it loads the RDB, applies the stream of commands that follows, and
// acknowledges offsets as Redis understands them. So the FAILOVER of Redis hands over to us
// without loss.
//
// Commands with an absolute effect are run against the keyspace as they come, by a [Runner].
// A command whose effect depends on when it runs, CL.THROTTLE above all, is not: its key
// becomes dirty, and the value is read from the primary over a second connection. The same
// is done after commands that this server does not have, if they leave a value that it can
// hold, and after those that build on a key that is not here. The reading says at which offset
// it was made, so commands that it includes are passed over: see dirty.go for the rule.
//
// An [Encoder] is the other direction: it makes an RDB and commands out of the keyspace for
// a stock Redis that replicates from us.
//
// The package dials nothing by itself, reads no clock and stores nothing but in the keyspace.
package redis
