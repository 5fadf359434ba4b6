// Package cluster decides asks whose state is in a Valkey or Redis server, the engine. So any
// number of servers share one limit. The engine compares and sets; package decide decides.
//
// # How one key is decided
//
// Asks about a key wait in the key's queue. One exchange at a time takes all waiting asks and
// decides them at one instant, in the order in which they came:
//
//	look      the value is read
//	decide    each ask on what the one before has left; nothing changed: answer
//	swap      the new value is written if the value is still the one that was read
//	applied   answer
//	conflict  another server was first: what it wrote came back, and is decided on
//
// So a key with very many asks takes one read and one write for hundreds of decisions, with any
// limiter. A single call, on a key that no other server has written for 100 ms, is decided on the
// remembered value, which saves the read. If other servers write the key too, a server leaves a gap
// after its write before its next exchange, so that the others get their turns. A server that has
// lost three races waits a little.
//
// The instant of a decision is that of the clock that all servers share, or that of the value's
// latest decision if this is later.
//
// # What is in a value
//
// Every write has a tag of its own: the number of its process and a sequence. A value begins
// with the tag of its write and ends with the limiter's state; in between are the tags of the
// latest writes of seven other processes. See codec.go.
//
// # When the outcome of a write is unknown
//
// A write whose reply is lost is in doubt. It is sent again until the deadline, which does no harm:
// its comparison fails if it was done. If the value contains its tag it was done, and its asks are
// answered as decided. If the value has changed without it, it was not done and never can be, and
// the asks are decided again. The outcome remains unknown only if there were more writers since
// than a value names; that is counted.
//
// At its deadline an ask is answered by the policy, at whatever step it is. If the policy answers
// with an error and a write turns out to have charged the ask, the key's next exchange gives the
// charge back: it restores the state before the write, or, if another server has written since,
// makes the limiter take the units back. See memory.go and refund.go.
//
// A value whose stamp is older than the one remembered shows that the engine has lost writes,
// as a failover does. The server then decides on what it remembers. A key that is missing was
// reset.
//
// # Files
//
// From the lowest layer to the highest: codec.go has the values, flight.go submitted and waiting
// asks, memory.go what is remembered of a key, key.go the keys, decider.go the decisions,
// exchange.go the steps above, turn.go and group.go decisions about several keys, store.go the
// interface for callers, and open.go the construction.
package cluster
