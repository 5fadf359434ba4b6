// Package commands is what cellserver can be asked: one declarative table of
// commands, the dispatcher that runs them, and the connection state they share.
//
// It knows no storage and no socket. What it needs of the keyspace, of the
// configuration and of the process it declares as interfaces (backend.go) and
// receives from package server; bytes reach it through the seam of package
// transport.
package commands
