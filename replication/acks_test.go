package replication_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/replication"
	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/transport"
)

// says returns an acknowledgement of everything before ack.
func says(ack uint64) protocol.Ack { return protocol.Ack{Applied: ack} }

// online returns a source with a stream of 1,000 bytes and n replicas with the IDs from 1 on,
// which have acknowledged nothing.
func online(t *testing.T, n int) (s *replication.Source, peers []*conn, advance func(time.Duration)) {
	s, clock := begun(t, defaults())
	for i := range n {
		peers = append(peers, &conn{})
		_, pump := s.PSync(call(int64(i+1), peers[i]))
		drain(t, pump)
	}
	s.Write(frameOf(2, make([]byte, 991)...))
	return s, peers, clock.Advance
}

// TestAwait checks which acknowledgements satisfy a waiter.
func TestAwait(t *testing.T) {
	s, _, _ := online(t, 3)
	type hears struct {
		id  int64
		ack uint64
	}
	var c [4]conn
	await := func(n int, offset uint64, p *conn) (acked int, pending bool) {
		acked, o := s.Await(n, offset, p)
		return acked, o == transport.Pending
	}
	for _, step := range []struct {
		hears
		n       int
		offset  uint64
		acked   int
		pending bool
	}{
		{hears{0, 0}, 0, 1_000, 0, false},
		{hears{0, 0}, -1, 1_000, 0, false},
		{hears{0, 0}, 1, 0, 0, true}, // they were sent everything, but may refuse it
		{hears{0, 0}, 1, 1, 0, true},
		{hears{1, 500}, 1, 500, 1, false},
		{hears{1, 500}, 1, 501, 0, true},
		{hears{2, 400}, 1, 400, 2, false},
		{hears{2, 400}, 2, 400, 2, false},
		{hears{2, 400}, 3, 400, 2, true},
		{hears{1, 300}, 1, 500, 1, false}, // an acknowledgement never goes back
		{hears{9, 900}, 1, 501, 0, true},  // there is no such replica
		{hears{3, 1_001}, 1, 501, 0, true},
		{hears{3, 1_000}, 1, 1_000, 1, false},
		{hears{2, 1_000}, 2, 1_000, 2, false},
		{hears{1, 1_000}, 3, 1_000, 3, false},
		{hears{1, 1_000}, 4, 1_000, 3, true},
	} {
		s.Acknowledge(step.id, says(step.ack))
		acked, pending := await(step.n, step.offset, &c[0])
		require.Equal(t, step.acked, acked, "%+v", step)
		require.Equal(t, step.pending, pending, "%+v", step)
		require.Equal(t, acked, s.Acked(step.offset))
	}
}

// TestAwaitWakes checks that a waiter is woken by the acknowledgement that satisfies it, and by
// no other.
func TestAwaitWakes(t *testing.T) {
	s, _, _ := online(t, 3)
	one, two, far := &conn{}, &conn{}, &conn{}
	s.Await(1, 500, one)
	s.Await(2, 500, two)
	s.Await(2, 800, far)
	woken := func() []int64 { return []int64{one.wakes.Load(), two.wakes.Load(), far.wakes.Load()} }

	s.Acknowledge(1, says(499))
	require.Equal(t, []int64{0, 0, 0}, woken())
	s.Acknowledge(1, says(1_000))
	require.Equal(t, []int64{1, 0, 0}, woken())
	s.Acknowledge(2, says(500))
	require.Equal(t, []int64{1, 1, 0}, woken())
	s.Acknowledge(2, says(700))
	s.Acknowledge(3, says(799))
	require.Equal(t, []int64{1, 1, 0}, woken())
	s.Acknowledge(3, says(800))
	s.Acknowledge(2, says(900))
	require.Equal(t, []int64{1, 1, 1}, woken())
}

// TestAwaitModel compares with a model: any order of offsets and acknowledgements wakes exactly
// the waiters that are satisfied.
func TestAwaitModel(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 3))
		s, _, _ := online(t, 4)
		type waits struct {
			n      int
			offset uint64
			p      *conn
		}
		var all []waits
		acks := map[int64]uint64{}
		for range 400 {
			if r.IntN(3) > 0 {
				w := waits{1 + r.IntN(4), r.Uint64N(1001), &conn{}}
				if _, o := s.Await(w.n, w.offset, w.p); o == transport.Pending {
					all = append(all, w)
				}
			} else {
				id := int64(1 + r.IntN(4))
				acks[id] = min(1000, max(acks[id], acks[id]+r.Uint64N(30)))
				s.Acknowledge(id, says(acks[id]))
			}
			for _, w := range all {
				have := 0
				for _, a := range acks {
					if a >= w.offset {
						have++
					}
				}
				require.Equal(t, have >= w.n, w.p.wakes.Load() == 1, "%+v", w)
			}
		}
	}
}

// TestAwaitOfOthers checks that a replica counts only once it has a complete state. Waiters are
// woken and ask again when another stream begins or time has passed, because a client may have
// disconnected or timed out.
func TestAwaitOfOthers(t *testing.T) {
	s, clock := begun(t, defaults())
	p := &conn{}
	_, o := s.Await(1, 10, p)
	require.Equal(t, transport.Pending, o)
	clock.Advance(4 * time.Second)
	require.Zero(t, p.wakes.Load())
	clock.Advance(2 * time.Second)
	require.EqualValues(t, 1, p.wakes.Load())
	require.Zero(t, clock.Timers())

	// A nil peer is not registered.
	_, o = s.Await(1, 10, nil)
	require.Equal(t, transport.Pending, o)
	require.Zero(t, clock.Timers())

	s.Write(frameOf(2, make([]byte, 91)...))
	_, pump := s.PSync(call(1, &conn{}))
	s.Await(1, 10, p)
	s.Acknowledge(1, says(100))
	require.Zero(t, s.Acked(10))
	drain(t, pump)
	require.Zero(t, s.Acked(10), "what it said before it was whole does not count")
	require.EqualValues(t, 1, p.wakes.Load())
	s.Acknowledge(1, says(100))
	require.EqualValues(t, 2, p.wakes.Load())
	require.Equal(t, 1, s.Acked(10))
	pump.Closed()
	require.Zero(t, s.Acked(10))

	s.Await(1, 10, p)
	s.Begin(replication.History{ID: id2, Offset2: -1}, 0)
	require.EqualValues(t, 3, p.wakes.Load())
}

// TestGood: good replicas have a complete state and have acknowledged within
// min-replicas-max-lag.
func TestGood(t *testing.T) {
	s, _, advance := online(t, 2)
	require.Zero(t, s.Good(10*time.Second)) // they have not acknowledged anything
	s.Acknowledge(1, says(0))
	require.Equal(t, 1, s.Good(10*time.Second))
	advance(5 * time.Second)
	s.Acknowledge(2, says(0))
	require.Equal(t, 2, s.Good(10*time.Second))
	require.Equal(t, 1, s.Good(4*time.Second))
	require.Equal(t, 2, s.Good(5*time.Second))
	advance(5 * time.Second)
	require.Equal(t, 2, s.Good(10*time.Second))
	advance(1)
	require.Equal(t, 1, s.Good(10*time.Second))

	// A replica with a partial resynchronization has everything up to its offset.
	c := call(3, &conn{})
	c.ReplID, c.Offset = id1, 801
	_, pump := s.PSync(c)
	require.NotNil(t, pump)
	require.Equal(t, 2, s.Good(10*time.Second))
	require.Equal(t, 1, s.Acked(800))
	require.Zero(t, s.Acked(801))
}

// TestGoodOnceTheFullSyncIsApplied: a replica acknowledges offset 0 during its full
// resynchronization. It is good only once it has acknowledged the end of that, not when the end
// was sent.
func TestGoodOnceTheFullSyncIsApplied(t *testing.T) {
	s, clock := begun(t, defaults())
	s.Retain(true)
	s.Write(frameOf(2, make([]byte, 91)...)) // 100 bytes
	_, pump := s.PSync(call(1, &conn{}))
	s.Acknowledge(1, says(0))
	s.Acknowledge(1, says(100))
	drain(t, pump)
	require.True(t, s.Replicas()[0].Online)
	require.Zero(t, s.Good(10*time.Second))
	s.Acknowledge(1, says(0)) // it was sent before the replica had applied the state
	require.Zero(t, s.Good(10*time.Second))
	require.Negative(t, s.Replicas()[0].Heard)
	clock.Advance(time.Second)
	s.Acknowledge(1, says(100))
	require.Equal(t, 1, s.Good(10*time.Second))
	require.Zero(t, s.Replicas()[0].Heard)
}

// TestReplicas checks what INFO shows of replicas.
func TestReplicas(t *testing.T) {
	s, _, advance := online(t, 1)
	advance(50 * time.Millisecond)
	s.Write(frameOf(2, make([]byte, 91)...))
	advance(20 * time.Millisecond)
	info := replication.ReplicaInfo{ID: 1, IP: "10.0.0.1", Port: 6001, Online: true, Heard: -1}
	require.Equal(t, []replication.ReplicaInfo{info}, s.Replicas())

	s.Acknowledge(1, protocol.Ack{Applied: 1_000, Synced: 900, HasSynced: true})
	advance(time.Millisecond)
	info.Acked, info.Heard = 1_000, time.Millisecond
	require.Equal(t, []replication.ReplicaInfo{info}, s.Replicas())

	s.Acknowledge(1, protocol.Ack{Applied: 1_050, Synced: 1_101, HasSynced: true}) // beyond the stream
	s.Acknowledge(1, says(1_100))
	info.Acked, info.Heard = 1_100, 0
	require.Equal(t, []replication.ReplicaInfo{info}, s.Replicas())
}
