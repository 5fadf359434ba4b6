// Package command defines what a command is: its entry in a [Table], and a [Call] of it. A
// call has access to the [Client] that sent it, the [Worker] that runs it, the [Server] and
// the [env.Store]. The package has no command and no session. [Host] declares what a call needs
// from the session that runs it.
package command
