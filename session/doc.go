// Package session runs the commands of clients: it connects the transport and the commands. A
// [Session] gets the bytes of one client, splits them into commands, and runs the commands in
// order. Replies leave in the same order, even if a command waits or runs on another goroutine. The
// package uses the properties of commands, but does not depend on any particular command.
package session
