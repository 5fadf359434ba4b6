// Package loadgen drives any server that speaks RESP and measures what it
// answers: the engine of cmd/cellbench.
//
// A [Template] is a command line with a place for the key; several with weights
// are a [Mix]. [Run] opens connections to a [Target], sends the mix to keys drawn
// from a [KeySpec], and returns a [Result]: latencies, rates, what was allowed and
// denied, and whether that agrees with the limits in play. [Compare] runs several
// targets in turn and relates them.
//
// In a closed loop every connection keeps a batch of Pipeline commands in flight
// and sends the next one when the last reply is in: it measures how much a server
// can do. In an open loop commands leave at a constant rate whatever the server
// does, and a latency counts from the instant at which the command should have
// left: a server that stalls is charged for every command that it held up, and
// not only for those that happened to be in flight (coordinated omission).
//
// A flow is one connection's traffic without its socket: what to send at an
// instant, and what the bytes that came back mean. It reads no clock and does no
// I/O, so that its accounting can be tested with instants of a test's choosing.
// Two drivers move the bytes of flows: an event loop per thread on Linux, which
// costs little and paces to the microsecond, and a goroutine per connection
// everywhere else.
//
// Instants are int64 nanoseconds since the start of a run, on the monotonic
// clock.
package loadgen
