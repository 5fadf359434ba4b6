// Package clock provides the instants of a server: a [Clock] that never goes back, the [System]
// clock, which can follow that of another server, and the [Record] of it from which a later start
// continues.
package clock
