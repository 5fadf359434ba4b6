// Package command says what a command is: its entry in a [Table], and a [Call] of it
// with all that it may touch, the [Client] that calls, the [Worker] that runs it, the
// [Server] they share and the [Store]. It knows no command and no session: what it asks
// of those that run it is [Host].
package command
