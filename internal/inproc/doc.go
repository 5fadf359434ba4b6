// Package inproc runs whole servers within a test, in the ways that tests of the layers need (see
// CONTRIBUTING.md):
//
//   - [Feed] creates a server without sockets, with a [Session] that passes bytes directly to
//     the command layer. [Open] does the same for a test, and fails the test if the server
//     closes the session.
//   - [Bubble] runs servers on a simulated network in virtual time. A [Node] is a server, and a
//     [Client] is a connection. Replication, kills and restarts are methods of a node.
//   - [Step] runs a server outside of a bubble, on a clock that only the test moves. It is for
//     scripts that never wait and so would keep the virtual time of a bubble from passing.
//   - [Serve] and [Start] use sockets of this machine, for tests that depend on the transport.
package inproc
