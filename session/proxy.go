package session

import "github.com/cellserver/cellserver/command"

// proxy returns a session that acts for s while a command of s runs on another goroutine. s
// itself belongs to the goroutine that feeds it, and may be fed or closed meanwhile.
func (s *Session) proxy() *Session {
	in := &Session{
		Client: command.Client{Peer: s.Peer, ID: s.ID, Created: s.Created, Authed: s.Authed, Reply: s.Reply, ProxyOf: &s.Client},
		engine: s.engine,
	}
	in.Owner, in.Server = in, s.Server
	in.Marks = s.Marks & command.MarkPrimary
	in.SetProtocol(s.Proto)
	in.User.Store(s.User.Load())
	in.Database.Store(s.Database.Load())
	in.active.Store(s.active.Load())
	in.lastCmd.Store(s.lastCmd.Load())
	in.Locked.Store(s.Locked.Load())
	in.Self.Store(s.Self.Load())
	s.Server.Proxied(&s.Client, &in.Client)
	return in
}

// merge copies the state that the command has changed in the proxy in back to s. The goroutine
// that feeds s calls it.
func (s *Session) merge(in *Session) {
	s.Authed, s.Reply = in.Authed, in.Reply
	s.Closing = s.Closing || in.Closing
	s.SetProtocol(in.Proto)
	if u := in.User.Load(); u != s.User.Load() {
		if s.User.Store(u); s.Server.Users.Find(u.Name) != u {
			s.Killed.Store(true) // the user was deleted before s was logged in as this user
		}
	}
	s.Database.Store(in.Database.Load())
	s.Locked.Store(in.Locked.Load())
	s.Self.Store(in.Self.Load())
	s.Server.Merged(&s.Client, &in.Client)
}
