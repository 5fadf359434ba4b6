package session

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/limit"
)

func (s *Session) lastActive() limit.Instant { return limit.Instant(s.active.Load()) }

// noteCommand records cmd as the client's last command, for CLIENT LIST. If cmd is nil, the last
// command does not change.
func (s *Session) noteCommand(cmd *command.Command) {
	if cmd != nil && s.lastCmd.Load() != int32(cmd.ID) {
		s.lastCmd.Store(int32(cmd.ID))
	}
}

// notePartial records for [Engine.CloseOverdue] the instant at which the present incomplete command
// began; now is the present instant. unfinished says that there is an incomplete command; otherwise
// the instant becomes 0. Bytes that only continue this command do not change the instant. progress
// says that the incomplete command is not the one of the last call, so it begins at now.
func (s *Session) notePartial(now int64, unfinished, progress bool) {
	since := s.partial.Load()
	switch {
	case unfinished && (since == 0 || progress):
		s.partial.Store(now)
	case !unfinished && since != 0:
		s.partial.Store(0)
	}
}

// Activity implements [command.Registry]: it returns what the client cl is doing, and the memory that
// the server keeps for cl. Any goroutine may call it.
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

// NoteCommand implements [command.Calls]: it records cmd as the last command of cl now, instead of
// at the end of the batch.
func (e *Engine) NoteCommand(cl *command.Client, cmd *command.Command) {
	sessionOf(cl).noteCommand(cmd)
}

// CloseOverdue closes the clients that exceed a limit at the instant now: the time limits of
// idleness, of an incomplete command and of authentication, or the output buffer limit. A client
// that waits or is subscribed is not idle. A replica has its own limit of idleness, since it
// reports its offset each second. A link to a primary has none of these limits. The server calls
// CloseOverdue once a second, which is cheaper than a deadline for every read.
func (e *Engine) CloseOverdue(now limit.Instant) {
	l := e.Limits()
	for _, s := range e.clients.list() {
		if s.Primary {
			continue // the link to a primary itself notices a silent primary
		}
		postponed := s.postponed() // read before Locked: see restartLogin
		locked, partial := limit.Instant(s.Locked.Load()), limit.Instant(s.partial.Load())
		idle, most := now.Sub(max(s.Created, s.lastActive())), l.Idle
		if s.Replica.Load() {
			most = l.ReplicaTimeout
		}
		switch {
		case e.Users.NeedsLogin() && locked != 0 && now.Sub(locked) >= l.PreAuth && !postponed,
			partial != 0 && now.Sub(partial) >= l.Partial,
			most > 0 && idle >= most && s.wait.Load() == nil && !s.Subscribed():
			s.Peer.Abort()
		case s.overdue(now):
			s.disconnect()
		}
	}
}
