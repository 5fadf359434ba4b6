// Package simnet simulates a network within a process, for tests in a bubble of testing/synctest.
// Goroutines that wait for the network let virtual time pass. So a delay of an hour takes no time,
// and every wait ends exactly on time.
//
// A [Network] connects hosts, which are IP addresses. [Network.Listen] and [Network.Dial]
// correspond to the functions of package net. A [Conn] is a stream with a bounded buffer, deadlines
// and half-close, like TCP. Each direction between two hosts is a link, which can be delayed, held
// or cut. Bytes of an open connection are never lost or reordered: a held link delivers them later,
// as TCP does by retransmission.
//
// All methods may be called concurrently.
package simnet
