// Package cluster decides asks with the state in a Valkey or Redis, so that any number of
// servers hold one limit. The engine compares and sets; package decide decides.
//
// # How one key is decided
//
// What is asked about a key waits in the key's queue. One exchange at a time takes all that
// waits and decides it at one instant, in the order in which it came:
//
//	look      the value is read
//	decide    each ask on what the one before has left; nothing changed: answer
//	swap      the new value is written if the value is still the one that was read
//	applied   answer
//	conflict  another server was first: what it wrote came back, and is decided on
//
// So a key that is asked about very often takes one read and one write for hundreds of
// decisions, whatever the limiter. A call by itself, on a key that nobody else has written for
// 100 ms, is decided on what is remembered, which saves the read. Who has written leaves a gap
// before its next exchange if others write the key, too, so that no server goes short. Who has
// lost three races waits a little.
//
// The instant of a decision is that of the clock that all servers share, or that of the
// value's latest decision if this is later.
//
// # What is in a value
//
// Every write has a tag of its own: the number of its process and a sequence. A value begins
// with the tag of its write and ends with the limiter's state; in between are the tags of the
// latest writes of seven other processes. See codec.go.
//
// # When it is not known what became of a write
//
// A write whose reply is lost is in doubt. It is sent again until the deadline, which does no
// harm: its comparison fails if it was done. If its tag is found in the value it was done, and
// is answered as decided. If the value has changed without it, it was not done and never can
// be, and the asks are decided again. Only if there were more writers than a value names can
// nobody know; that is counted.
//
// At its deadline an ask is answered by the policy, wherever it is. If the policy answers with
// an error and a write turns out to have charged the ask, the key's next exchange gives that
// back: it restores the state before the write, or, if somebody has written since, has the
// limiter take the units back. See memory.go and refund.go.
//
// A value whose stamp is older than the one remembered shows that the engine has lost writes,
// as a failover does. The server then decides on what it remembers. A key that is missing was
// reset.
//
// # Files
//
// From below: codec.go is the values, flight.go what is submitted and waits, memory.go what
// is remembered of a key, key.go the keys, decider.go the decisions, exchange.go the steps
// above, turn.go and group.go several keys at once, store.go what others call, open.go what
// it is made of.
package cluster
