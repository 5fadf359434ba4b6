// Package inproc runs whole servers within a test, in the ways that tests of the layers need (see
// CONTRIBUTING.md):
//
//   - [Feed] creates a server without sockets, whose [Session] passes bytes directly to the command
//     layer. [Open] is the same for a test, which fails if the server closes the session.
//   - [Bubble] runs servers on a simulated network in virtual time: a [Node] for each server, and a
//     [Client] for each connection. Replication, kills and restarts are methods of a node.
//   - [Step] runs a server outside of a bubble, on a clock that the test steps: for scripts that
//     never wait and so keep a bubble's time from passing.
//   - [Serve] and [Start] use sockets of this machine, for tests that depend on the transport.
package inproc
