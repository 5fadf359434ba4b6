package commands

// standIn returns a session in whose place a command may act that runs on another
// goroutine: s itself belongs to those who feed it, who look at it whenever its
// client says something or goes away.
func (s *Session) standIn() *Session {
	in := &Session{
		Client:        Client{peer: s.peer, id: s.id, created: s.created, authed: s.authed, reply: s.reply, isStandIn: true},
		trackingState: trackingState{caching: s.caching},
		engine:        s.engine,
		standsFor:     s,
	}
	in.Owner, in.server = in, s.server
	in.setProtocol(s.proto)
	in.db.Store(s.db.Load())
	in.active.Store(s.active.Load())
	in.lastCmd.Store(s.lastCmd.Load())
	in.locked.Store(s.locked.Load())
	in.self.Store(s.self.Load())
	in.tracks.Store(s.tracks.Load())
	return in
}

// giveTransaction moves the transaction of s, and what it watches, to its stand-in.
func (s *Session) giveTransaction(in *Session) {
	in.tx, in.watched, in.watching = s.tx, s.watched, s.watching
	s.tx, s.watched, s.watching = nil, nil, 0
}

// adopt makes s what its stand-in has become.
func (s *Session) adopt(in *Session) {
	s.authed, s.reply, s.caching = in.authed, in.reply, false
	s.closing = s.closing || in.closing
	s.setProtocol(in.proto)
	s.db.Store(in.db.Load())
	s.locked.Store(in.locked.Load())
	s.self.Store(in.self.Load())
}
