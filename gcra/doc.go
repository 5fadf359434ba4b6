// Package gcra decides by the generic cell rate algorithm whether cells conform to a rate. It uses
// integers, as redis-cell does (src/cell/mod.rs).
//
// It keeps one number per key, the theoretical arrival time (TAT): the instant at
// which everything admitted so far will have been paid for. A [Quota] is built
// once per call from CL.THROTTLE's arguments; [Decide] compares the debt, TAT
// minus now, with it. Nothing here reads a clock or stores anything: the caller
// passes the instant and keeps the state, in the form of codec.go.
//
// The algorithm in full, with T the emission interval (period / count) and limit
// the max burst plus one:
//
//	debt     = max(0, TAT - now)
//	used     = ceil(debt / T)
//	allowed  = used + quantity <= limit
//	TAT'     = now + max(0, debt + T*quantity), if allowed
//
// Products are 128 bits wide, so no argument wraps. Where redis-cell's own
// arithmetic loses a key early, wraps int64, or leaves a key without a TTL, this
// package does not follow it; docs/differences.md lists every such point.
package gcra
