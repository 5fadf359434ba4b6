// Package clock provides the instants of a server. A [Clock] never goes back, except by
// [System.Set]. The [System] clock can follow the clock of another server. A server stores a
// [Record] of its clock, from which the next start continues.
package clock
