package session

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/limit"
)

// lastActive returns the instant of the last Feed that received bytes.
func (s *Session) lastActive() limit.Instant { return limit.Instant(s.active.Load()) }

// noteCommand records the last command for CLIENT LIST.
func (s *Session) noteCommand(cmd *command.Command) {
	if cmd != nil && s.lastCmd.Load() != int32(cmd.ID) {
		s.lastCmd.Store(int32(cmd.ID))
	}
}

// notePartial records since when a command has been incomplete, for the janitor. Bytes that only
// continue the command do not change the instant. progress says that the incomplete command is not
// the same as at the last call.
func (s *Session) notePartial(now int64, unfinished, progress bool) {
	since := s.partial.Load()
	switch {
	case unfinished && (since == 0 || progress):
		s.partial.Store(now)
	case !unfinished && since != 0:
		s.partial.Store(0)
	}
}

// Activity implements [command.Host].
func (e *Engine) Activity(cl *command.Client) command.Activity {
	s := sessionOf(cl)
	d := e.Describe(cl)
	a := command.Activity{
		Description: d, Active: s.lastActive(), Blocked: s.blocked(), Queued: int(s.queued.Load()) - 1, Held: s.memory(d.Memory),
	}
	if id := s.lastCmd.Load(); id >= 0 {
		a.LastCommand = e.Commands.Entries[id]
	}
	return a
}

// NoteCommand implements [command.Host].
func (e *Engine) NoteCommand(cl *command.Client, cmd *command.Command) {
	sessionOf(cl).noteCommand(cmd)
}

// CloseOverdue closes the clients that exceed a time limit: of idleness, of an incomplete command,
// or of authentication. A replica, which reports its offset each second, has its own limit of
// idleness. The server calls CloseOverdue once a second, which is cheaper than a deadline for every
// read.
func (e *Engine) CloseOverdue(now limit.Instant) {
	l := e.Limits()
	for _, s := range e.clients.list() {
		if s.Primary {
			continue // the replication link detects a silent primary itself
		}
		locked, partial := limit.Instant(s.Locked.Load()), limit.Instant(s.partial.Load())
		idle, most := now.Sub(max(s.Created, s.lastActive())), l.Idle
		if s.Replica.Load() {
			most = l.ReplicaTimeout
		}
		switch {
		case e.Users.NeedsLogin() && locked != 0 && now.Sub(locked) >= l.PreAuth && !s.postponed(),
			partial != 0 && now.Sub(partial) >= l.Partial,
			most > 0 && idle >= most && s.wait.Load() == nil && !s.Subscribed():
			s.Peer.Abort()
		case s.overdue(now):
			s.disconnect()
		}
	}
}
