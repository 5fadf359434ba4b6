// Package session is what stands between the transport and the commands: it is fed the bytes
// of one client, splits them into commands, runs these in order, and sees to it that the
// replies leave in that order, those that wait and those that run elsewhere included. It
// knows what a command is, and no command.
package session
