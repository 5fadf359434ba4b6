package commands

import (
	"strings"

	"github.com/cellserver/cellserver/commands/command"
)

// queuedScript returns the script that a queued command will run, or nil if the
// server does not have it yet.
func (l *Lane) queuedScript(q *queued) *script {
	if q.cmd.Name == "eval" || q.cmd.Name == "eval_ro" {
		return l.scriptOf(q.args[1])
	}
	sha, ok := parseSHA(q.args[1])
	if !ok {
		return nil
	}
	return l.script(sha)
}

// runsLong reports whether a command of the transaction may take long: a script with
// a loop, or one that has to be compiled. A script that SCRIPT FLUSH of another takes
// away meanwhile is compiled again in the transaction, but it is the same script.
func runsLong(c *command.Call, t *transaction) bool {
	for i := range t.queue {
		q := &t.queue[i]
		if !q.cmd.RunsScript() {
			continue
		}
		s := laneOf(c.Worker).queuedScript(q)
		switch {
		case s != nil && s.Straight(len(q.args)-3):
		case s == nil && strings.HasPrefix(q.cmd.Name, "evalsha"): // NOSCRIPT; see callScript
		default:
			return true
		}
	}
	return false
}
