package session

import (
	"runtime/debug"
	"strings"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
)

// count notes one call of cmd. A run of equal commands is added to the counters in
// one go, so that a pipeline of one command costs one atomic addition.
func (l *Worker) count(cmd *command.Command) {
	if cmd != l.runCmd {
		l.flushRun()
		l.runCmd = cmd
		n := &l.counts[cmd.ID]
		l.pace = l.paceOf(cmd, n.Timed.Load() == 0 && n.Exact.Load() == 0)
	}
	l.runLen++
}

// flushRun adds the current run to the counters, at the end of a batch or when
// another command begins.
func (l *Worker) flushRun() {
	if l.runCmd == nil {
		return
	}
	n := &l.counts[l.runCmd.ID]
	n.Calls.Add(l.runLen)
	if l.Denied > 0 {
		n.Denied.Add(l.Denied)
	}
	l.called += l.runLen
	l.runCmd, l.runLen, l.Denied = nil, 0, 0
}

// endBatch ends what a worker has run for one client: it adds the last run to the counters, and
// all calls to those of the client's user.
func (l *Worker) endBatch() {
	l.flushRun()
	if l.called > 0 && l.ctx.Client != nil {
		if u := l.ctx.Client.User.Load(); u != l.by {
			l.by, l.caller = u, engineOf(l.Server).callers.Of(u.Name)
		}
		l.caller.Add(l.called)
		l.called = 0
	}
	l.Server.BatchEnd(&l.Worker)
}

// CountRejected implements [command.Host].
func (e *Engine) CountRejected(c *command.Call, cmd *command.Command) {
	l := workerOf(c.Worker)
	l.beginErrors() // it is not the caller's
	if cmd != nil {
		l.counts[cmd.ID].Rejected.Add(1)
	}
}

// noteError is the OnError of a worker's writers.
func (l *Worker) noteError(e resp.Error, from resp.Origin) {
	l.errors++
	engineOf(l.Server).errors.Add(e, from)
	if from != resp.Repeated && strings.HasPrefix(string(e), "OOM ") {
		l.lackedMemory()
	}
}

// lackedMemory notes which key the running command has no memory for.
func (l *Worker) lackedMemory() {
	c := &l.ctx
	switch {
	case l.Server.Seen == nil || c.Cmd == nil:
		return
	case c.Cmd.Keys.Policy && len(c.Args) > 2:
		l.Server.Seen.LackedMemory(c.Worker, c.Cmd.Keys.AppendPolicyKey(nil, c.Args))
		return
	case c.Cmd.Keys.First <= 0 || c.Cmd.Keys.First >= len(c.Args):
		return
	}
	l.Server.Seen.LackedMemory(c.Worker, c.Args[c.Cmd.Keys.First])
}

// CountError implements [command.Host].
func (e *Engine) CountError(err resp.Error, from resp.Origin) { e.errors.Add(err, from) }

// beginErrors makes what is answered from now on the errors of another command.
func (l *tally) beginErrors() { l.errorsSeen = l.errors }

// endErrors counts a command that was answered with an error since beginErrors, or since
// the last command that a script or a transaction has called in between. An error that a
// script catches is its command's alone, as in Redis.
func (l *tally) endErrors(cmd *command.Command) {
	if l.errors != l.errorsSeen {
		l.errorsSeen = l.errors
		l.counts[cmd.ID].Failed.Add(1)
	}
}

// Recovered logs a panic without the values it carried, which may hold a key.
func (e *Engine) Recovered(any) {
	e.panics.Add(1)
	e.Log.Error("a command failed on an internal error", "stack", string(debug.Stack()))
}
