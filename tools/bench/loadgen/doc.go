// Package loadgen drives any server that speaks RESP and measures its replies. It is the
// engine of cellbench.
//
// A [Template] is a command line with a placeholder for the key. Several templates with weights
// are a [Mix]. [Run] opens connections to a [Target], sends the mix to keys drawn from a
// [KeySpec], and returns a [Result]: latencies, rates, the calls that were allowed and denied,
// and whether these agree with the limits. [Compare] runs several targets in turn and compares
// them.
//
// In a closed loop every connection has a batch of Pipeline commands in flight and sends the
// next batch when the last reply has arrived. This measures throughput. In an open loop
// commands are due at a constant rate, however slow the server is. A latency counts from the
// instant at which the command should have left. So a stall counts for every command that it
// held up, and not only for those that were in flight (coordinated omission).
//
// A flow is one connection's traffic without its socket: the bytes to send at an instant, and
// the meaning of the bytes that came back. It reads no clock and does no I/O, so tests can
// choose the instants. Two drivers move the bytes of flows: an event loop per thread on Linux,
// which costs little and paces to the microsecond, and a goroutine per connection on other
// systems and for a Target with a Dialer.
//
// Instants are int64 nanoseconds since the start of a run, on the monotonic clock.
package loadgen
