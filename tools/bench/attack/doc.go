// Package attack plays hostile and careless clients against a server, and measures the effect
// on other clients.
//
// An [Attack] is one kind of traffic with two sizes: the small one fits a test, the full one
// needs a machine of its own. [Run] starts a server as a process, fills it, runs an attack,
// and returns a [Result]: the latency of another client during the attack, the maximum memory
// of the process, and whether the clients that read their replies got them. The server need
// not be cellserver: the figures are compared with the same attack on redis-server.
//
// The clients here read replies without keeping them, since replies may have 60 MB. The bounds
// on the figures are in docs/attacks.md and, for the small size, in the tests of this package.
package attack
