// Package session connects the transport and the commands. It gets the bytes of one client,
// splits them into commands, and runs these in order. The replies leave in the same order,
// even if a command waits or runs elsewhere. The package knows what a command is, but no
// particular command.
package session
