// Package clock is where the instants of a server come from: a [Clock] that never steps
// back, the [System] clock, which can follow that of another server, and the [Record] of it
// from which a later start goes on.
package clock
