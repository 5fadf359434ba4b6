package session

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
)

// reject replies with the error e to a command that does not run, and counts the command as
// rejected. The command may replace the error.
func (w *Worker) reject(c *command.Call, e resp.Error) {
	w.counts[c.Cmd.ID].Rejected.Add(1)
	w.Server.Rejected(c)
	if c.Cmd.Rejected != nil {
		e = c.Cmd.Rejected(c, e)
	}
	c.Fail(e)
}

// Reject implements [command.Calls]: it replies with err to the command of c, which does not run,
// and counts it as rejected.
func (e *Engine) Reject(c *command.Call, err resp.Error) { workerOf(c.Worker).reject(c, err) }

// rejectUnknown calls the Rejected hooks for a command that does not exist, with a nil c.Cmd. Then it
// restores c.Cmd, so that CLIENT LIST keeps showing the command before.
func (w *Worker) rejectUnknown(c *command.Call) {
	last := c.Cmd
	c.Cmd = nil
	w.Server.Rejected(c)
	c.Cmd = last
}

// unknown replies with an error to a command that does not exist. The command names "POST" and
// "Host:" come from a browser that was tricked into connecting. As in Redis, the connection is
// then closed before the body of the request can be parsed as commands.
func (w *Worker) unknown(c *command.Call) {
	if resp.IsCrossProtocol(c.Args[0]) {
		c.Client.Closing = true
		w.Server.Log.Warn("closed a connection that speaks HTTP", "client", c.Client.Addr())
		return
	}
	c.Fail(c.Server.Commands.Unknown(c.Args))
}

// errLoading is the error, with the text of Redis, for a command that may not run while the server
// loads its data.
const errLoading resp.Error = "LOADING Redis is loading the dataset in memory"

// errListening returns the error for a command that a RESP2 client with subscriptions may not run.
func errListening(cmd *command.Command) resp.Error {
	return resp.Error("ERR Can't execute '" + cmd.Name +
		"': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")
}

// errMonitoring is the error, with the text of Redis, for a command with keys of a MONITOR client
// or a replica.
const errMonitoring resp.Error = "ERR Replica can't interact with the keyspace"

// refuseListener replies with an error to a command that a client with subscriptions may not run,
// and to a command with keys or a script of a MONITOR client or a replica. It reports whether it
// did.
func (w *Worker) refuseListener(c *command.Call) bool {
	const keys = command.FlagWrite | command.FlagReadonly
	switch {
	case c.Client.ListensOnly() && !c.Cmd.ListenersMay():
		w.reject(c, errListening(c.Cmd))
	case c.Client.Marks&(command.MarkMonitoring|command.MarkReplica) != 0 && (c.Cmd.Flags&keys != 0 || c.Cmd.RunsScript()):
		w.reject(c, errMonitoring)
	default:
		return false
	}
	return true
}

// refuseBusy replies with a BUSY error to a command that may not run while a script is busy, and
// reports whether it did.
func refuseBusy(c *command.Call) bool {
	if c.Cmd.Flags&command.FlagAllowBusy != 0 && (c.Cmd.RunsBusy == nil || c.Cmd.RunsBusy(c.Args)) {
		return false
	}
	workerOf(c.Worker).reject(c, command.ErrBusy)
	return true
}

// refused replies with an error to a write command of the groups "generic" and "server" if its
// effect could not be persisted, and reports whether it did. Commands of other groups get this
// error from the store, and only if they have an effect.
func (w *Worker) refused(c *command.Call) bool {
	if c.Cmd.Flags&command.FlagWrite == 0 || c.Cmd.Group != "generic" && c.Cmd.Group != "server" || !w.Journal.Refuses() {
		return false
	}
	w.reject(c, c.Refusal())
	return true
}
