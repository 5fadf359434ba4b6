package session

import (
	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
)

// reject answers a command that never ran.
func (l *Worker) reject(c *command.Call, e resp.Error) {
	l.counts[c.Cmd.ID].Rejected.Add(1)
	l.Server.Rejected(c)
	if c.Cmd.Rejected != nil {
		e = c.Cmd.Rejected(c, e)
	}
	c.Fail(e)
}

// Reject implements [command.Host].
func (e *Engine) Reject(c *command.Call, err resp.Error) { workerOf(c.Worker).reject(c, err) }

// rejectUnknown tells the groups of a command that does not exist. CLIENT LIST goes on to
// name the one before it.
func (l *Worker) rejectUnknown(c *command.Call) {
	last := c.Cmd
	c.Cmd = nil
	l.Server.Rejected(c)
	c.Cmd = last
}

// unknown answers a command that does not exist. A browser that was tricked into
// talking to us sends POST and Host:, and is cut off as in Redis, before the body
// that it carries can be taken for commands.
func (l *Worker) unknown(c *command.Call) {
	if resp.IsCrossProtocol(c.Args[0]) {
		c.Client.Closing = true
		l.Server.Log.Warn("closed a connection that speaks HTTP", "client", c.Client.Addr())
		return
	}
	c.Fail(c.Server.Commands.Unknown(c.Args))
}

// errLoading is said in Redis' words.
const errLoading resp.Error = "LOADING Redis is loading the dataset in memory"

// errListening refuses a command to a client that only listens.
func errListening(cmd *command.Command) resp.Error {
	return resp.Error("ERR Can't execute '" + cmd.Name +
		"': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")
}

const errMonitoring resp.Error = "ERR Replica can't interact with the keyspace"

// refuseListener refuses a command to a client that only listens, or one that would use keys
// to a client that monitors or is a replica.
func (l *Worker) refuseListener(c *command.Call) bool {
	const keys = command.FlagWrite | command.FlagReadonly
	switch {
	case c.Client.ListensOnly() && !c.Cmd.ListenersMay():
		l.reject(c, errListening(c.Cmd))
	case c.Client.Marks&(command.MarkMonitoring|command.MarkReplica) != 0 && (c.Cmd.Flags&keys != 0 || c.Cmd.RunsScript()):
		l.reject(c, errMonitoring)
	default:
		return false
	}
	return true
}

// refuseBusy answers a command that may not run while a script keeps everybody
// waiting.
func refuseBusy(c *command.Call) bool {
	if c.Cmd.Flags&command.FlagAllowBusy != 0 && (c.Cmd.Name != "shutdown" || len(c.Args) == 2 && arg.IsWord(c.Args[1], "NOSAVE")) {
		return false
	}
	workerOf(c.Worker).reject(c, command.ErrBusy)
	return true
}

// refused answers a command that may not run because its effect could not be kept.
// Those that decide ask for themselves, since one that only looks is answered.
func (l *Worker) refused(c *command.Call) bool {
	if c.Cmd.Flags&command.FlagWrite == 0 || c.Cmd.Group != "generic" && c.Cmd.Group != "server" || !l.Journal.Refuses() {
		return false
	}
	l.reject(c, c.Refusal())
	return true
}
