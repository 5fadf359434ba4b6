package session

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/transport"
)

// Pump implements [command.Host]. The replica is in no hurry for the transport, which does not
// know how long it may load: it has [command.Limits.ReplicaTimeout] to say something.
func (e *Engine) Pump(c *command.Call, p transport.Pump) {
	s := sessionOf(c.Client)
	s.pump = p
	s.Replica.Store(true)
	s.Mark(command.MarkReplica, true)
	if peer, ok := s.Peer.(transport.Patient); ok {
		peer.BePatient()
	}
}

// fillPump adds what the replica is to be sent next to the replies of a turn after which the
// client is to be read from, and says how to go on. It runs inside the store, so that no script
// that takes long holds a lock which a copy of a key needs. While the world is stopped it leaves
// the replica alone until it starts.
//
// If there is more the session wakes itself instead of asking for another turn: a client that
// is fed again is not read from, and what the replica has applied is not to wait for the end of
// a full synchronization. A graceful stop does not wait for the stream either.
func (s *Session) fillPump(l *Worker) (next transport.Next) {
	if l.Busy {
		l.Store.NotifyStart(s.Peer.Wake)
		return transport.Read
	}
	mark := len(l.w.Buf)
	defer func() {
		if r := recover(); r != nil {
			s.engine.Recovered(r)
			l.Store.Unlock()
			l.w.Cut(mark)
			next = transport.Close
		}
	}()
	filled, more, err := s.pump.Fill(l.w.Buf, transport.PumpMost)
	l.w.Buf = filled
	if err != nil {
		s.engine.Log.Warn("closed a replica", "client", s.Addr(), "error", err)
		return transport.Close
	}
	if more {
		s.Peer.Wake()
	}
	return transport.Read
}

// closePump tells the pump that its client is gone.
func (s *Session) closePump() {
	if s.pump != nil {
		s.pump.Closed()
		s.pump = nil
	}
}
