package session

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/transport"
)

// Pump implements [command.Messages]: it makes the client of c a replica, to which the stream p is
// sent after the reply. The transport no longer limits the idle time of the connection, since it
// does not know how long the replica may load. [env.Limits.ReplicaTimeout] limits it instead.
func (e *Engine) Pump(c *command.Call, p transport.Pump) {
	s := sessionOf(c.Client)
	s.pump = p
	s.Replica.Store(true)
	s.Mark(command.MarkReplica, true)
	if peer, ok := s.Peer.(transport.Patient); ok {
		peer.BePatient()
	}
}

// fillPump appends the next part of the replication stream to the output of a turn, and returns
// how the transport continues. It is called only if the transport would then read from the
// connection. It runs inside the store, so that a long script cannot hold a lock that copying a
// key needs. While the world is stopped, fillPump sends nothing and has the session woken when
// the world starts.
//
// If there is more to send, the session wakes itself instead of asking for another turn: a
// session that is fed again at once does not read, and acknowledgements of the replica must not
// wait for the end of a full resynchronization. A graceful stop does not wait for the stream
// either.
func (s *Session) fillPump(w *Worker) (next transport.Next) {
	if w.Busy {
		w.world.NotifyStart(s.Peer.Wake)
		return transport.Read
	}
	mark := len(w.out.Buf)
	defer func() {
		if r := recover(); r != nil {
			s.engine.Recovered(r)
			w.ReleaseLocks()
			w.out.Cut(mark)
			next = transport.Close
		}
	}()
	filled, more, err := s.pump.Fill(w.out.Buf, transport.PumpMost)
	w.out.Buf = filled
	if err != nil {
		s.engine.Log.Warn("closed a replica", "client", s.Addr(), "error", err)
		return transport.Close
	}
	if more {
		s.Peer.Wake()
	}
	return transport.Read
}

func (s *Session) closePump() {
	if s.pump != nil {
		s.pump.Closed()
		s.pump = nil
	}
}
