package session

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
)

// noteError is the OnError of a lane's writers.
func (l *Lane) noteError(e resp.Error, from resp.Origin) {
	l.errors++
	engineOf(l.Server).errors.Add(e, from)
}

// beginErrors makes what is answered from now on the errors of another command.
func (l *tally) beginErrors() { l.errorsSeen = l.errors }

// endErrors counts a command that was answered with an error since beginErrors, or since
// the last command that a script or a transaction has called in between. An error that a
// script catches is its command's alone, as in Redis.
func (l *tally) endErrors(cmd *command.Command) {
	if l.errors != l.errorsSeen {
		l.errorsSeen = l.errors
		l.counts[cmd.Id].Failed.Add(1)
	}
}
