package replication

import (
	"cmp"
	"slices"
	"time"

	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/transport"
)

// Acknowledge takes what the replica with that client id has applied. What it cannot have been sent
// is passed over.
func (s *Source) Acknowledge(id int64, r protocol.Ack) {
	g, end := s.encoderOf(id)
	if g != nil {
		s.acknowledgeRedis(id, g, r)
		return
	}
	if r.Applied > end || r.HasSynced && r.Synced > end {
		return
	}
	s.common.ackTable.acknowledge(id, r.Applied, s.o.Stopwatch())
}

// Await asks whether n replicas have applied everything before that offset of the stream, and
// returns how many have. While the outcome is Pending, p is woken when that may have changed,
// upon which it is to be called again; nothing is done for a p that is nil. Replicas that
// wait for more of the stream to come are woken at once.
func (s *Source) Await(n int, offset uint64, p transport.Peer) (acked int, o transport.Outcome) {
	acked, o = s.common.ackTable.await(n, offset, p, s.o.Stopwatch())
	if o == transport.Kept || p == nil {
		return acked, o
	}
	if s.common.ackTable.urgent.Load() {
		s.common.waker.hurry()
	}
	if redis := s.redisReplicas.Load() > 0; redis || !s.ticking.Load() {
		s.mu.Lock()
		s.arm()
		if redis {
			s.askRedis()
		}
		s.mu.Unlock()
	}
	return acked, o
}

// WakeWaiting wakes all who wait for replicas: they ask again.
func (s *Source) WakeWaiting() { s.common.ackTable.expire(never) }

// Acked is how many replicas have applied everything before that offset of the stream.
func (s *Source) Acked(offset uint64) int { return s.common.ackTable.count(offset) }

// Good is how many replicas have applied a whole state and have acknowledged something since,
// within maxLag, which is min-replicas-max-lag.
func (s *Source) Good(maxLag time.Duration) int {
	return s.common.ackTable.good(s.o.Stopwatch() - maxLag)
}

// Require says how many good replicas Enough is about; 0 is none.
func (s *Source) Require(n int, maxLag time.Duration) { s.common.ackTable.require(n, maxLag) }

// Enough reports whether there are as many good replicas as Require has said.
func (s *Source) Enough() bool {
	return int64(s.o.Stopwatch()) <= s.common.ackTable.goodUntil.Load()
}

// ReplicaInfo is a replica that a source serves.
type ReplicaInfo struct {
	ID   int64 // of its client
	Addr string
	// IP and Port are what it has said of where it listens.
	IP   string
	Port int
	// Online says that it was sent a whole state.
	Online bool
	// Encoder says that it is no server of this kind: see [Source.ServeRedis].
	Redis bool
	// Acked is the offset up to which it has applied everything, as far as it has said so.
	Acked uint64
	// Heard is how long ago it has acknowledged something, or negative if it has not since it
	// has applied a whole state.
	Heard time.Duration
}

// Replicas are the present ones, by the order in which their clients came.
func (s *Source) Replicas() []ReplicaInfo {
	now := s.o.Stopwatch()
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]ReplicaInfo, 0, len(s.senders))
	for id, r := range s.senders {
		a := s.common.ackTable.of(id)
		info := ReplicaInfo{
			ID: id, Addr: r.call.Addr, IP: r.call.IP, Port: r.call.Port,
			Online: r.online.Load(), Redis: r.encoder != nil, Acked: a.acked, Heard: -1,
		}
		if a.heard >= 0 {
			info.Heard = max(0, now-a.heard)
		}
		all = append(all, info)
	}
	slices.SortFunc(all, func(a, b ReplicaInfo) int { return cmp.Compare(a.ID, b.ID) })
	return all
}
