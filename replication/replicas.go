package replication

import (
	"cmp"
	"slices"
	"time"

	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/transport"
)

// Acknowledge records the acknowledgement r of the replica with the client ID id. If r has an
// offset beyond the end of the stream, Acknowledge ignores it.
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

// Await returns acked, the number of replicas that have applied everything before offset. The
// outcome o is Kept if acked is at least n. Otherwise o is Pending, and p is woken when the outcome
// may have changed. p must then call Await again. If p is nil, Await only counts. If the source
// delays bytes of the stream to send them together with later ones, Await makes it send them at
// once.
func (s *Source) Await(n int, offset uint64, p transport.Peer) (acked int, o transport.Outcome) {
	acked, o = s.common.ackTable.await(n, offset, p, s.o.Stopwatch())
	if o == transport.Kept || p == nil {
		return acked, o
	}
	if s.common.ackTable.urgent.Load() {
		s.common.waker.wakeNow()
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

// WakeWaiting wakes all peers that wait for replicas, so that they call Await again.
func (s *Source) WakeWaiting() { s.common.ackTable.expire(never) }

// Acked returns the number of replicas that have applied everything before offset of the stream.
func (s *Source) Acked(offset uint64) int { return s.common.ackTable.count(offset) }

// Good returns the number of replicas that have applied a complete state and have acknowledged
// something within maxLag, which is min-replicas-max-lag.
func (s *Source) Good(maxLag time.Duration) int {
	return s.common.ackTable.good(s.o.Stopwatch() - maxLag)
}

// Require sets the condition of Enough: at least n replicas have acknowledged something within
// maxLag. An n of 0 requires none.
func (s *Source) Require(n int, maxLag time.Duration) { s.common.ackTable.require(n, maxLag) }

// Enough reports whether the condition that Require has set is met. It takes no lock.
func (s *Source) Enough() bool {
	return int64(s.o.Stopwatch()) <= s.common.ackTable.goodUntil.Load()
}

// ReplicaInfo describes a replica that a source serves.
type ReplicaInfo struct {
	ID   int64 // ID of the replica in CLIENT LIST
	Addr string
	// IP and Port are the address at which the replica listens, as it has announced. IP is "" if
	// it has not announced one.
	IP   string
	Port int
	// Online says that the replica was sent a complete state.
	Online bool
	// Redis says that the replica is a Redis or Valkey, and not a cellserver: see
	// [Source.ServeRedis].
	Redis bool
	// Acked is the offset before which the replica has acknowledged everything.
	Acked uint64
	// Heard is the time since the replica last acknowledged something. It is negative if the
	// replica has not acknowledged anything since it applied a complete state.
	Heard time.Duration
}

// Replicas returns the connected replicas, in the order in which their clients connected.
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
		if a.lastAck >= 0 {
			info.Heard = max(0, now-a.lastAck)
		}
		all = append(all, info)
	}
	slices.SortFunc(all, func(a, b ReplicaInfo) int { return cmp.Compare(a.ID, b.ID) })
	return all
}
