// Package attack does to a server what hostile and careless clients do, and measures
// what that costs everybody else.
//
// An [Attack] is one kind of traffic with two sizes: the small one fits a test, the
// full one is for a machine of its own. [Run] starts a server as a process, fills it,
// lets an attack go, and returns a [Result]: the latency that another client saw
// meanwhile, the most memory that the process held, and whether the clients that read
// their replies got them. A server need not be cellserver: the same attack on
// redis-server is what the figures are put beside.
//
// The clients here read replies without keeping them, since replies of 60 MB are the
// point. What the figures have to be is in docs/attacks.md and, for the small size, in
// the tests of this package.
package attack
