// Package inproc runs whole servers inside a test, in the ways that tests of the layers need
// (see CONTRIBUTING.md):
//
//   - [Feed] makes a server without sockets, whose [Session] passes bytes directly to the command
//     layer. [Open] is the same for a test, which it fails where the server closes the session.
//   - [Bubble] has servers on a simulated network in virtual time: a [Node] each, and a [Client]
//     for each connection. Replication, deaths and restarts are methods of a node.
//   - [Step] runs a server outside of a bubble, on a clock that the test steps: for scripts that
//     never wait, which keep the time of a bubble from passing.
//   - [Serve] and [Start] serve sockets of this machine, for what depends on the transport.
package inproc
