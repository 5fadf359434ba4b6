package session

import "github.com/cellserver/cellserver/limit"

// CloseOverdue closes the clients that have outstayed a limit: idle, too long over one
// command, or too long without authenticating. The server calls it once a second,
// which is cheaper than a deadline for every read.
func (e *Engine) CloseOverdue(now limit.Instant) {
	l := e.Limits()
	for _, s := range e.clients.list() {
		locked, partial := limit.Instant(s.Locked.Load()), limit.Instant(s.partial.Load())
		idle := now.Sub(max(s.Created, s.lastActive()))
		switch {
		case e.Users.NeedsLogin() && locked != 0 && now.Sub(locked) >= l.PreAuth && !s.postponed(),
			partial != 0 && now.Sub(partial) >= l.Partial,
			l.Idle > 0 && idle >= l.Idle && s.wait.Load() == nil && !s.Subscribed():
			s.Peer.Abort()
		case s.overdue(now):
			s.disconnect()
		}
	}
}
