package replication

import (
	"errors"
	"math"

	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/transport"
)

// errLargeRecord is the reason why a Redis is refused and has to send PSYNC again later.
var errLargeRecord = errors.New("a large record is being written")

// ServeRedis serves the PSYNC c of a Redis or Valkey through the encoder that begin returns. The
// replica is listed and counted like other replicas, but FAILOVER cannot promote it. If begin
// returns an error, so does ServeRedis.
func (s *Source) ServeRedis(c protocol.PSync, begin func(l EncoderStart) (Encoder, error)) (transport.Pump, error) {
	r, l, err := s.addRedis(c)
	if err != nil {
		return nil, err
	}
	g, err := begin(l)
	if err != nil {
		s.disconnected(r)
		return nil, err
	}
	s.mu.Lock()
	r.encoder = g
	if s.senders[c.Client] == r {
		s.redisReplicas.Add(1)
	}
	s.mu.Unlock()
	s.full.Add(1)
	s.o.Log.Info("a Redis or Valkey synchronizes", "addr", c.Addr, "offset", l.From)
	return r, nil
}

// addRedis adds the replica that has sent c, so that the backlog is not freed, and returns the
// parameters for its encoder. It returns an error if the replica cannot be served now.
func (s *Source) addRedis(c protocol.PSync) (*sender, EncoderStart, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.frames.begin
	switch {
	case s.closed || s.history.ID == "":
		return nil, EncoderStart{}, errClosed
	case s.senders[c.Client] != nil:
		return nil, EncoderStart{}, errors.New("the connection is that of a replica already")
	}
	r := s.addSender(c, from, false)
	if r == nil {
		return nil, EncoderStart{}, errLargeRecord
	}
	return r, EncoderStart{Tail: Tail{s.backlog, &r.position}, From: from, Wake: c.Peer.Wake, Sleep: r.sleepAt}, nil
}

// encoderOf returns g, the encoder of the replica with the client ID id, and the end of the stream.
// g is nil if there is no such replica or it has no encoder.
func (s *Source) encoderOf(id int64) (g Encoder, end uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.senders[id]; r != nil {
		g = r.encoder
	}
	return g, s.frames.end
}

// acknowledgeRedis records r, the acknowledgement of the Redis that has the client ID id and the
// encoder g.
func (s *Source) acknowledgeRedis(id int64, g Encoder, r protocol.Ack) {
	g.Acknowledge(int64(min(r.Applied, math.MaxInt64)))
	s.common.ackTable.acknowledge(id, g.Acked(), s.o.Stopwatch())
}

// askRedis asks each Redis to acknowledge at once. Otherwise a Redis acknowledges once a second.
// The caller must hold mu.
func (s *Source) askRedis() {
	for _, r := range s.senders {
		if r.encoder != nil {
			r.encoder.Ask()
		}
	}
}
