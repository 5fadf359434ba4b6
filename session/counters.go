package session

import (
	"runtime/debug"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
)

// sampleEvery is how many commands share one reading of the stopwatch: two
// readings for each would cost a tenth of a pipelined command. The first call of each
// command is timed, so that none which ran seems to have taken no time.
const sampleEvery = 64

// count notes one call of cmd. A run of equal commands is added to the counters in
// one go, so that a pipeline of one command costs one atomic addition.
func (l *Worker) count(cmd *command.Command) {
	if cmd != l.runCmd {
		l.flushRun()
		l.runCmd = cmd
		if l.counts[cmd.ID].Timed.Load() == 0 {
			l.sample = 1
		}
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
	l.runCmd, l.runLen, l.Denied = nil, 0, 0
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

// Timed implements [command.Host].
func (e *Engine) Timed(c *command.Call, cmd *command.Command, f func(c *command.Call)) {
	began := c.Server.Options.Stopwatch()
	f(c)
	workerOf(c.Worker).counts[cmd.ID].Nanos.Add(int64(c.Server.Options.Stopwatch() - began))
}

// Recovered logs a panic without the values it carried, which may hold a key.
func (e *Engine) Recovered(any) {
	e.panics.Add(1)
	e.Log.Error("a command failed on an internal error", "stack", string(debug.Stack()))
}
