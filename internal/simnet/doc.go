// Package simnet is a network inside of a process, for tests in a bubble of testing/synctest:
// what waits for it lets virtual time pass, so a delay of an hour takes no time, and every wait
// ends exactly when it should.
//
// A [Network] connects hosts, which are IP addresses. [Network.Listen] and [Network.Dial] stand
// for those of package net, and a [Conn] is a stream with a bounded buffer, deadlines and a half
// close, as TCP has them. Each direction between two hosts is a link that can be delayed, held
// back, or cut. Nothing is ever lost or reordered inside of a connection that stays open: a link
// that is held delivers later, as TCP does by sending again.
//
// All methods may be called concurrently.
package simnet
