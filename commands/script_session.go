package commands

import "github.com/cellserver/cellserver/commands/command"

// standIn returns a session in whose place a command may act that runs on another
// goroutine: s itself belongs to those who feed it, who look at it whenever its
// client says something or goes away.
func (s *Session) standIn() *Session {
	in := &Session{
		Client:        command.Client{Peer: s.Peer, Id: s.Id, Created: s.Created, Authed: s.Authed, Reply: s.Reply, IsStandIn: true},
		trackingState: trackingState{caching: s.caching},
		engine:        s.engine,
		standsFor:     s,
	}
	in.Owner, in.Server = in, s.Server
	in.SetProtocol(s.Proto)
	in.Db.Store(s.Db.Load())
	in.active.Store(s.active.Load())
	in.lastCmd.Store(s.lastCmd.Load())
	in.Locked.Store(s.Locked.Load())
	in.Self.Store(s.Self.Load())
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
	s.Authed, s.Reply, s.caching = in.Authed, in.Reply, false
	s.Closing = s.Closing || in.Closing
	s.SetProtocol(in.Proto)
	s.Db.Store(in.Db.Load())
	s.Locked.Store(in.Locked.Load())
	s.Self.Store(in.Self.Load())
}
