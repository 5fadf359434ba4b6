// Package remote decides calls of limiters whose state is in a Valkey or Redis server, the engine.
// So any number of servers share one limit. A call is an ask (decide.Ask). The engine only compares
// and sets values; package decide makes the decisions.
//
// # How one key is decided
//
// Asks about a key wait in the key's queue. One exchange at a time takes the waiting asks, up to
// 1024, and decides them at one instant, in the order in which they came:
//
//	look      the value is read
//	decide    each ask is decided on the result of the ask before; if nothing has changed: answer
//	swap      the new value is written if the value is still the one that was read
//	applied   the asks are answered
//	conflict  another server has written first: its value is returned, and the asks are decided again
//
// So a key with very many asks needs one read and one write for hundreds of decisions, with any
// limiter. A single ask about a key whose value is remembered, and that no other server has written
// for 100 ms, is decided on that value without a read. If other servers write the key too, a server
// waits for a short time after its write before its next exchange, so that the other servers get
// their turns. A server that has lost three races waits for a short random time.
//
// The instant of a decision is that of the clock that all servers share, or the instant of the
// value's latest decision if this is later.
//
// # What is in a value
//
// Every write that stores a value has its own tag: a random number of the process and a sequence
// number. A value begins with a header that contains the tag of its write, and ends with the
// limiter's state. In between are the tags of the latest writes of up to seven other processes. See
// codec.go.
//
// # Several states in one value
//
// A joint ask (decide.Joint) makes several decisions on the parts of one value, such as those under a policy; see package
// states. Its program is run on the parts, again after a lost race, and all changes are one write. No lease and no
// remembered refusal answers it, and no charge of one in one slot is given back. The policies "open" and "local" answer each of its asks.
//
// A joint ask may be about several values, such as those under several policies. They are read at once, and written in
// one step as those of an RL.MULTI in one slot are. If they are in several slots, each slot is written by itself, and what was
// charged is taken back if the program decides otherwise after a lost race. See divided.go and charges.go. If the program is
// not divisible, the ask gets an error then.
//
// # When the outcome of a write is unknown
//
// A write whose reply is lost is in doubt. It is sent again until the deadline of its asks, which
// does no harm: its comparison fails if it was done. If the value contains the tag of the write,
// the write was done, and its asks are answered as decided. If the value has changed and does not
// contain the tag, the write was not done and never can be, and the asks are decided again. The
// outcome remains unknown if more processes have written since than a value has tags, for example.
// Such asks are counted.
//
// If an ask has no answer at its deadline, the policy answers it: the operator has chosen whether
// it gets an error, is admitted, or is decided on this server's share of the limit. If the answer
// is an error and a write turns out to have charged the ask, the key's next exchange gives the
// charge back if it can. It restores the state before the write, or, if another server has written
// since, makes the limiter take the units back. See memory.go and refund.go.
//
// A value whose stamp is older than that of the remembered value shows that the engine has lost
// writes, as happens in a failover. The server then decides on the remembered value. An absent
// key counts as reset.
//
// # Files
//
// From the lowest layer to the highest: codec.go has the values, flight.go submitted and waiting
// asks, memory.go what is remembered of a key, key.go the keys, decider.go the decisions,
// exchange.go the steps above, turn.go and group.go decisions about several keys, lease.go and
// renewal.go the leases of hot keys, store.go the interface for callers, and open.go the
// construction.
package remote
