package replication

import (
	"errors"
	"math"

	"github.com/cellserver/cellserver/commands/standby"
	"github.com/cellserver/cellserver/transport"
)

// errLargeRecord is why a guest has to come again.
var errLargeRecord = errors.New("a large record is being written")

// Admit serves a replica by the guest that begin makes. It shows and counts as any other
// replica, but cannot take over.
func (s *Source) Admit(c standby.SyncCall, begin func(l GuestStart) (Guest, error)) (transport.Pump, error) {
	r, l, err := s.addGuest(c)
	if err != nil {
		return nil, err
	}
	g, err := begin(l)
	if err != nil {
		s.left(r)
		return nil, err
	}
	s.mu.Lock()
	r.guest = g
	if s.senders[c.Client] == r {
		s.guests.Add(1)
	}
	s.mu.Unlock()
	s.full.Add(1)
	s.o.Log.Info("a Redis or Valkey synchronizes", "addr", c.Addr, "offset", l.From)
	return r, nil
}

// addGuest adds the replica, which keeps the backlog from being freed.
func (s *Source) addGuest(c standby.SyncCall) (*sender, GuestStart, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.frames.begin
	switch {
	case s.closed || s.history.ID == "":
		return nil, GuestStart{}, errClosed
	case s.senders[c.Client] != nil:
		return nil, GuestStart{}, errors.New("the connection is that of a replica already")
	}
	r := s.addSender(c, from, false)
	if r == nil {
		return nil, GuestStart{}, errLargeRecord
	}
	return r, GuestStart{Tail: Tail{s.backlog, &r.position}, From: from, Wake: c.Peer.Wake, Sleep: r.sleepsAt}, nil
}

// guestOf returns the guest with that client id, or nil, and where the stream has got to.
func (s *Source) guestOf(id int64) (g Guest, end uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.senders[id]; r != nil {
		g = r.guest
	}
	return g, s.frames.end
}

// hearGuest takes what a guest acknowledges.
func (s *Source) hearGuest(id int64, g Guest, r standby.ReplicaSays) {
	g.Hear(int64(min(r.Ack, math.MaxInt64)))
	s.common.ackTable.hear(id, g.Acked(), s.o.Stopwatch())
}

// askGuests has guests acknowledge at once, who otherwise do each second. mu must be held.
func (s *Source) askGuests() {
	for _, r := range s.senders {
		if r.guest != nil {
			r.guest.Ask()
		}
	}
}
