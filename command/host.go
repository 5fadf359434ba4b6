package command

import "github.com/cellserver/cellserver/resp"

// Host has the services of package session for commands, in addition to the reply. Each field is
// for one purpose. Package session implements all of them by one type. A call costs an interface
// call, so only rare operations are here.
type Host struct {
	Waits      Waits
	Work       Work
	Exclusives Exclusives
	Calls      Calls
	Pauses     Pauses
	Registry   Registry
	Messages   Messages
	Measures   Measures
}

// Calls runs the commands of transactions and scripts, and counts calls and faults.
type Calls interface {
	// Run runs the command of c, whose arity and permissions were checked, and counts it. Reject
	// replies with the error e to a command that may not run.
	Run(c *Call)
	Reject(c *Call, e resp.Error)
	// CountRejected counts a refused call of cmd. The command of c, such as EVAL, has called cmd.
	// cmd is nil if no such command exists.
	CountRejected(c *Call, cmd *Command)
	// Recovered counts a panic and logs its stack. It does not log reason, the panic's value,
	// because that may contain a key.
	Recovered(reason any)
	// CountError counts the error reply e in the statistics of errors. from says where the error
	// comes from.
	CountError(e resp.Error, from resp.Origin)
	// NoteCommand records cmd as the last command of cl. It is for log entries that show the client
	// and are written before cmd ends. At the end of its batch a command is recorded in any case.
	NoteCommand(cl *Client, cmd *Command)
}
