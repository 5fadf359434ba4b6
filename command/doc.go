// Package command defines the commands of the server as data: an entry in a [Table], and a [Call]
// for each execution. A call has access to the [Client] that sent it, the [Worker] that runs it,
// the [Server] and the [env.Store]. The package implements neither a command, except HELP, nor a
// session. [Host] declares what a call asks of the layer of sessions.
package command
