// Package gcra decides by the generic cell rate algorithm whether cells conform to a rate. It uses
// integers, as redis-cell does (src/cell/mod.rs).
//
// The algorithm keeps one number per key, the theoretical arrival time (TAT). This is the instant
// at which all admitted cells will have been paid for, at the price of one emission interval per
// cell. A caller makes a [Quota] from the arguments of CL.THROTTLE. [Decide] compares the debt,
// which is TAT minus now, with the quota. The package reads no clock and stores nothing: the caller
// passes the instant and stores the state, in the form of codec.go.
//
// This is the whole algorithm. T is the emission interval, period / count, and limit is the max
// burst plus one:
//
//	debt     = max(0, TAT - now)
//	used     = ceil(debt / T)
//	allowed  = used + quantity <= limit
//	TAT'     = now + max(0, debt + T*quantity), if allowed
//
// Products are 128 bits wide, so no argument makes them wrap. The arithmetic of redis-cell itself
// may lose a key early, wrap an int64, or leave a key without a TTL. This package does not follow
// it there; docs/differences.md lists every such case.
package gcra
