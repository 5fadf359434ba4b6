// Package redis replicates from and to a Redis or Valkey by their own protocol.
//
// A [Follower] is a replica of a live Redis (5 or newer) or Valkey, with or without redis-cell.
// It loads the RDB, executes the stream of commands that follows, and acknowledges offsets as a
// Redis replica does. So FAILOVER of the Redis hands over to this server without loss.
//
// A [Runner] executes commands with an absolute effect as they arrive. Commands whose effect
// depends on the time at which they run, above all CL.THROTTLE, are not executed. Their keys
// become dirty, and the values are read from the primary over a second connection. The same is
// done after commands that this server does not have, if they leave a value that it can store,
// and after commands that modify a key that does not exist on this server. Each reading includes
// the offset at which it was made, so commands that it already contains are skipped: see dirty.go
// for the rules.
//
// An [Encoder] works in the other direction: it produces an RDB and commands from the keyspace,
// for a stock Redis that replicates from this server.
//
// The package opens no connections itself, has no clock of its own, and stores nothing outside of
// the keyspace.
package redis
