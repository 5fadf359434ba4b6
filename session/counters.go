package session

import (
	"runtime/debug"
	"strings"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
)

// count records one call of cmd. Equal commands in a row are collected and added to the counters
// at once, so that a pipeline of one command costs one atomic addition. At the beginning of a row,
// count also sets w.pace to the pace of cmd.
func (w *Worker) count(cmd *command.Command) {
	if cmd != w.runCmd {
		w.flushRun()
		w.runCmd = cmd
		n := &w.counts[cmd.ID]
		w.pace = w.paceOf(cmd, n.Timed.Load() == 0 && n.Exact.Load() == 0)
	}
	w.runLen++
}

// flushRun adds the collected calls and denials of w.runCmd to the counters of the command, and the
// calls to w.called. It is called at the end of a batch and when another command begins.
func (w *Worker) flushRun() {
	if w.runCmd == nil {
		return
	}
	n := &w.counts[w.runCmd.ID]
	n.Calls.Add(w.runLen)
	if w.Denied > 0 {
		n.Denied.Add(w.Denied)
	}
	w.called += w.runLen
	w.runCmd, w.runLen, w.Denied = nil, 0, 0
}

// endBatch ends a batch that the worker has run for one client: it adds the collected calls to the
// counters of the commands, adds all calls of the batch to the counter of the client's user, and
// calls the BatchEnd hooks.
func (w *Worker) endBatch() {
	w.flushRun()
	if w.called > 0 && w.ctx.Client != nil {
		if u := w.ctx.Client.User.Load(); u != w.by {
			w.by, w.caller = u, engineOf(w.Server).callers.Of(u.Name)
		}
		w.caller.Add(w.called)
		w.called = 0
	}
	w.Server.BatchEnd(&w.Worker)
}

// CountRejected implements [command.Calls]: it counts a refused call of cmd that another command
// has made. cmd may be nil if no such command exists.
func (e *Engine) CountRejected(c *command.Call, cmd *command.Command) {
	w := workerOf(c.Worker)
	w.beginErrors() // the errors of the called command are counted apart
	if cmd != nil {
		w.counts[cmd.ID].Rejected.Add(1)
	}
}

// noteError counts the error reply e. It is the OnError function of the worker's writers. For an
// OOM error it also records the key for which the command had no memory.
func (w *Worker) noteError(e resp.Error, from resp.Origin) {
	w.errors++
	engineOf(w.Server).errors.Add(e, from)
	if from != resp.Repeated && strings.HasPrefix(string(e), "OOM ") {
		w.lackedMemory()
	}
}

// lackedMemory records that the running command had no memory for its first derived key or, if it
// has none, its first key. It does nothing if w.Server.Seen is nil or the command has no keys.
func (w *Worker) lackedMemory() {
	c := &w.ctx
	if w.Server.Seen == nil || c.Cmd == nil {
		return
	}
	if at := c.Cmd.Keys.FirstDerived(c.Args); at > 0 {
		w.Server.Seen.LackedMemory(c.Worker, c.Cmd.Keys.Derived.Append(nil, c.Args, at))
		return
	}
	if c.Cmd.Keys.First <= 0 || c.Cmd.Keys.First >= len(c.Args) {
		return
	}
	w.Server.Seen.LackedMemory(c.Worker, c.Args[c.Cmd.Keys.First])
}

// CountError implements [command.Calls]: it counts an error reply that no worker has written.
func (e *Engine) CountError(err resp.Error, from resp.Origin) { e.errors.Add(err, from) }

// beginErrors marks the beginning of a command for endErrors.
func (t *tally) beginErrors() { t.errorsSeen = t.errors }

// endErrors counts the command cmd as failed if an error was written since the last call of
// beginErrors or endErrors. So an error that a script catches counts only for the command that
// failed in the script, as in Redis.
func (t *tally) endErrors(cmd *command.Command) {
	if t.errors != t.errorsSeen {
		t.errorsSeen = t.errors
		t.counts[cmd.ID].Failed.Add(1)
	}
}

// Recovered counts a panic and logs its stack. The value of the panic is not logged, since it may
// contain a key.
func (e *Engine) Recovered(any) {
	e.panics.Add(1)
	e.Log.Error("a command failed on an internal error", "stack", string(debug.Stack()))
}
