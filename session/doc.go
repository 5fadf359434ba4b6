// Package session runs the commands of clients: it connects the transport and the commands. A
// [Session] gets the bytes of one client, splits them into commands, and runs the commands in
// order. Replies leave in the same order, even if a command waits or runs on another goroutine.
// The package knows the properties of commands, but no particular command.
package session
