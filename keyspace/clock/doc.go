// Package clock provides the instants of a server. A [Clock] never goes back. The [System] clock
// can follow that of another server, and a later start continues from the [Record] of it.
package clock
