package replication_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/replication"
	"github.com/cellserver/cellserver/transport"
)

// join adds a new follower, and returns it with the pump of its connection.
func (p *primary) join(client int64) (*follower, transport.Pump) {
	reply, pump := p.source.PSync(call(client, &conn{}))
	words := strings.Fields(string(reply))
	require.Len(p.t, words, 4, "%q", reply)
	require.Equal(p.t, []string{"+FULLRESYNC", id1, "cell1"}, []string{words[0], words[1], words[3]})
	at, err := strconv.ParseUint(words[2], 10, 64)
	require.NoError(p.t, err)
	return newFollower(p.t, p.clock, nil, at), pump
}

// TestFullSyncUnderChurn: a replica joins during changes of all kinds, and reads at a random
// pace. Once it has a complete state and the rest of the stream, it must equal the primary. So
// must one that joins later.
func TestFullSyncUnderChurn(t *testing.T) {
	for seed := range uint64(6) {
		p := newPrimary(t, seed, &settings{64 << 20, time.Hour, time.Hour})
		for range 1500 {
			p.churn()
		}
		for client := range int64(3) {
			f, pump := p.join(client)
			fills := 0
			for !f.whole {
				most := 1 + p.rng.IntN(1<<p.rng.IntN(17))
				b, _, err := fill(t, pump, most)
				require.NoError(t, err)
				require.NoError(t, f.take(b))
				for range p.rng.IntN(4) {
					p.churn()
				}
				if fills++; fills%10 == 0 {
					p.flush()
				}
			}
			require.Positive(t, f.blocks)
			for range 100 {
				p.churn()
			}
			p.flush()
			require.NoError(t, f.take(drain(t, pump)))
			require.Equal(t, p.source.Offset(), f.applied)
			require.Equal(t, stateOf(p.ks), stateOf(f.ks), "seed %d client %d", seed, client)
			require.NoError(t, f.ks.Whole())
			pump.Closed()
		}
		require.Empty(t, p.source.Replicas())
	}
}

// TestFullSyncBesideOthers makes changes on other goroutines, and fills the connection whenever
// it is woken. In the end the states must be equal.
func TestFullSyncBesideOthers(t *testing.T) {
	p := newPrimary(t, 5, &settings{256 << 20, time.Hour, time.Hour})
	for range 1500 {
		p.churn()
	}
	woken := &waking{c: make(chan struct{}, 1)}
	c := call(1, nil)
	c.Peer = woken
	_, pump := p.source.PSync(c)
	f := newFollower(t, p.clock, nil, p.source.Offset())
	var others sync.WaitGroup
	others.Go(func() {
		for range 3000 {
			p.churn()
		}
		p.flush()
	})
	ended := make(chan struct{})
	go func() { others.Wait(); close(ended) }()
	for over := false; !over || !f.whole || f.applied < p.source.Offset(); {
		b, more, err := fill(t, pump, transport.PumpMost)
		require.NoError(t, err)
		require.NoError(t, f.take(b))
		p.source.Acknowledge(1, says(f.applied))
		if more {
			continue
		}
		select {
		case <-woken.c:
		case <-ended:
			over = true
		}
	}
	require.Equal(t, stateOf(p.ks), stateOf(f.ks))
	require.NoError(t, f.ks.Whole())
	require.Equal(t, 1, p.source.Acked(p.source.Offset()))
}

// TestWholeWaitsForWhatTheLogHas: a state is complete only when the replica has everything that
// the copied keys may already contain, even if the log has not written it yet.
func TestWholeWaitsForWhatTheLogHas(t *testing.T) {
	p := newPrimary(t, 1, defaults())
	require.NoError(t, p.handle.Put(0, []byte("k"), entry.String, []byte("v"), entry.NoExpiry))
	f, pump := p.join(1)
	require.NoError(t, f.take(drain(t, pump)))
	require.Equal(t, stateOf(p.ks), stateOf(f.ks))
	require.False(t, f.whole)
	require.False(t, p.source.Replicas()[0].Online)
	p.flush()
	require.NoError(t, f.take(drain(t, pump)))
	require.True(t, f.whole)
	require.True(t, p.source.Replicas()[0].Online)
}

// TestLargeValues sends a value far larger than a turn in pieces, in a block and in a frame.
func TestLargeValues(t *testing.T) {
	p := newPrimary(t, 1, &settings{8 << 20, time.Hour, time.Hour})
	value := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	require.NoError(t, p.handle.Put(0, []byte("old"), entry.String, value, entry.NoExpiry))
	p.flush()
	f, pump := p.join(1)
	require.NoError(t, f.take(drain(t, pump)))
	require.True(t, f.whole)
	require.NoError(t, p.handle.Put(1, []byte("new"), entry.String, value, entry.NoExpiry))
	p.flush()
	require.NoError(t, f.take(drain(t, pump)))
	require.Equal(t, stateOf(p.ks), stateOf(f.ks))
}

// TestCutAtEveryByte: after a link is cut behind any byte, the follower continues from what it
// has applied.
func TestCutAtEveryByte(t *testing.T) {
	p := newPrimary(t, 7, defaults())
	full, pump := p.join(1)
	require.NoError(t, full.take(drain(t, pump)))
	require.True(t, full.whole)
	for p.source.Offset() < 4<<10 {
		require.NoError(t, p.handle.Put(0, fmt.Appendf(nil, "k%d", p.rng.IntN(20)), entry.String, fmt.Appendf(nil, "%d", p.rng.Int()), entry.NoExpiry))
		if p.rng.IntN(4) == 0 {
			p.flush()
		}
	}
	p.flush()
	want := stateOf(p.ks)
	wire := drain(t, pump)
	require.Greater(t, len(wire), 4<<10)
	for cut := range 4<<10 + 1 {
		f := newFollower(t, p.clock, nil, full.at)
		f.whole = true
		require.NoError(t, f.take(wire[:cut]))
		c := call(int64(cut+2), &conn{})
		c.ReplID, c.Offset = id1, int64(f.applied)+1
		reply, again := p.source.PSync(c)
		require.Equal(t, "+CONTINUE "+id1+" cell1\r\n", string(reply))
		f.chunks, f.tail, f.at = nil, nil, f.applied
		require.NoError(t, f.take(drain(t, again)))
		require.Equal(t, p.source.Offset(), f.applied)
		if cut%64 == 0 {
			require.Equal(t, want, stateOf(f.ks))
		}
		again.Closed()
		f.ks.Close()
	}
}

// TestCutFullSync: a full resynchronization that is cut anywhere is never complete.
func TestCutFullSync(t *testing.T) {
	p := newPrimary(t, 3, defaults())
	for i := range 600 {
		require.NoError(t, p.handle.Put(0, fmt.Appendf(nil, "k%d", i), entry.String, []byte("value"), entry.NoExpiry))
	}
	p.flush()
	_, pump := p.join(1)
	wire := drain(t, pump)
	require.Greater(t, len(wire), 4<<10)
	f := newFollower(t, p.clock, nil, p.source.Offset())
	for i := range wire {
		require.False(t, f.whole)
		require.NoError(t, f.take(wire[i:i+1]))
	}
	require.True(t, f.whole)
	require.Equal(t, stateOf(p.ks), stateOf(f.ks))
}

// TestPeerThatNeverReads: a peer that reads nothing uses no memory but the backlog, which
// overtakes it.
func TestPeerThatNeverReads(t *testing.T) {
	set := &settings{1 << 20, time.Hour, 10 * time.Second}
	s, _ := begun(t, set)
	c := &conn{}
	_, pump := s.PSync(call(1, c))
	drain(t, pump)
	piece := bytes.Repeat(frameOf(2, make([]byte, 91)...), 1000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 200 {
		s.Write(piece)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(set.backlog+set.backlog/4))
	require.EqualValues(t, 1, c.wakes.Load())
	_, _, err := fill(t, pump, transport.PumpMost)
	require.ErrorContains(t, err, "overtaken")
}

// TestOvertakenReplicaIsGivenUp: an overtaken replica is disconnected although its connection is
// never filled. A replica that is behind by less than the backlog stays.
func TestOvertakenReplicaIsGivenUp(t *testing.T) {
	s, clock := begun(t, &settings{100_000, time.Hour, time.Hour})
	late, slow, full, redisAt := &conn{}, &conn{}, &conn{}, &conn{}
	_, pump := s.PSync(call(1, late))
	drain(t, pump)
	_, copying := s.PSync(call(2, full)) // none of it was sent
	g := &encoder{}
	_, err := s.ServeRedis(call(3, redisAt), func(l replication.EncoderStart) (replication.Encoder, error) {
		g.EncoderStart = l
		return g, nil
	})
	require.NoError(t, err)
	s.Write(bytes.Repeat(frameOf(2, make([]byte, 991)...), 50))
	read, ok := g.Tail.Read(make([]byte, 50_000), 0)
	require.True(t, ok)
	require.Equal(t, 50_000, read)
	_, still := s.PSync(call(4, slow))
	drain(t, still)
	clock.Advance(time.Second)
	require.Len(t, s.Replicas(), 4)

	s.Write(bytes.Repeat(frameOf(2, make([]byte, 991)...), 90))
	clock.Advance(time.Second)
	for _, gone := range []*conn{late, full} {
		require.EqualValues(t, 1, gone.aborts.Load())
	}
	for _, stays := range []*conn{slow, redisAt} {
		require.Zero(t, stays.aborts.Load())
	}
	require.Len(t, s.Replicas(), 2)
	for _, p := range []transport.Pump{pump, copying} {
		_, _, err := fill(t, p, transport.PumpMost)
		require.ErrorContains(t, err, "overtaken")
		p.Closed()
	}
	require.NotEmpty(t, drain(t, still))

	s.Write(bytes.Repeat(frameOf(2, make([]byte, 991)...), 100))
	clock.Advance(time.Second)
	require.EqualValues(t, 1, redisAt.aborts.Load())
	require.Zero(t, slow.aborts.Load(), "it has just read")
	require.Len(t, s.Replicas(), 1)
}

// TestAlive: a peer that was sent nothing for repl-ping-replica-period is sent a keepalive.
func TestAlive(t *testing.T) {
	s, clock := begun(t, defaults())
	c := &conn{}
	_, pump := s.PSync(call(1, c))
	f := newFollower(t, clock, nil, 0)
	require.NoError(t, f.take(drain(t, pump)))
	require.True(t, f.whole)
	for range 9 {
		clock.Advance(time.Second)
	}
	require.Zero(t, c.wakes.Load())
	clock.Advance(time.Second)
	require.EqualValues(t, 1, c.wakes.Load())
	require.NoError(t, f.take(drain(t, pump)))
	require.Equal(t, 1, f.alive)
	require.Empty(t, drain(t, pump))

	// Bytes of the stream count as sent, too.
	clock.Advance(5 * time.Second)
	s.Write(frameOf(2))
	clock.Advance(time.Second)
	wakes := c.wakes.Load()
	require.NoError(t, f.take(drain(t, pump)))
	clock.Advance(9 * time.Second)
	require.Equal(t, wakes, c.wakes.Load())
	clock.Advance(time.Second)
	require.Equal(t, wakes+1, c.wakes.Load())
	b, _, err := fill(t, pump, 7) // less room than a chunk needs
	require.NoError(t, err)
	require.NoError(t, f.take(append(b, drain(t, pump)...)))
	require.Equal(t, 2, f.alive)
}

// TestManyReplicas: replicas that read at their own pace, on separate goroutines, get the same
// bytes.
func TestManyReplicas(t *testing.T) {
	const replicas, writes = 100, 2_000
	s, _ := begun(t, &settings{4 << 20, time.Hour, time.Hour})
	var want []byte
	pieces := rand.New(rand.NewPCG(1, 1))
	var ready, done sync.WaitGroup
	got := make([][]byte, replicas)
	total := make(chan int, replicas)
	ready.Add(replicas)
	for i := range replicas {
		done.Go(func() {
			woken := &waking{c: make(chan struct{}, 1)}
			c := call(int64(i), nil)
			c.Peer = woken
			_, pump := s.PSync(c)
			ready.Done()
			r := rand.New(rand.NewPCG(uint64(i), 1))
			f := &follower{}
			for need := -1; need < 0 || len(got[i]) < need; {
				out, more, err := pump.Fill(nil, 1+r.IntN(1<<(4+r.IntN(13))))
				if err != nil {
					t.Error(err)
					return
				}
				f.chunks = append(f.chunks, out...)
				for {
					c, n, err := replication.NextChunk(f.chunks)
					if err != nil {
						t.Error(err)
						return
					}
					if n == 0 {
						break
					}
					if c.Type == replication.ChunkTail {
						got[i] = append(got[i], c.Payload...)
					}
					f.chunks = f.chunks[n:]
				}
				s.Acknowledge(int64(i), says(uint64(len(got[i]))))
				if more || need >= 0 { // the stream has ended, and the rest of it can be filled
					continue
				}
				select {
				case <-woken.c:
				case need = <-total:
				}
			}
			pump.Closed()
		})
	}
	ready.Wait()
	for range writes {
		p := frameOf(2, pattern(uint64(len(want)), pieces.IntN(500))...)
		want = append(want, p...)
		s.Write(p)
	}
	for range replicas {
		total <- len(want)
	}
	done.Wait()
	for i := range got {
		require.True(t, bytes.Equal(want, got[i]), i)
	}
	require.Empty(t, s.Replicas())
}

// waking is a peer that signals when it is woken.
type waking struct {
	conn
	c chan struct{}
}

func (w *waking) Wake() {
	select {
	case w.c <- struct{}{}:
	default:
	}
}

// TestStreamAllocatesNothing: neither writing nor sending the stream allocates, once its segments
// exist.
func TestStreamAllocatesNothing(t *testing.T) {
	s, _ := begun(t, &settings{replication.LeastBacklog, time.Hour, time.Hour})
	_, pump := s.PSync(call(1, &conn{}))
	piece := frameOf(2, make([]byte, lingering)...)
	out := make([]byte, 0, transport.PumpMost)
	round := func() {
		s.Write(piece)
		out, _, _ = pump.Fill(out[:0], transport.PumpMost)
		s.Acknowledge(1, says(s.Offset()))
		s.Acked(s.Offset())
	}
	for range 10 {
		round()
	}
	require.Zero(t, testing.AllocsPerRun(100, round))
}

// lingering is the number of bytes after which a replica is woken at once.
const lingering = 64 << 10

// TestFullSyncDoesNotWaitForACommand: the event loop that fills a replica's connection has other
// clients, so it does not wait while a command holds the next keys. It retries soon.
func TestFullSyncDoesNotWaitForACommand(t *testing.T) {
	p := newPrimary(t, 1, defaults())
	var keys [][]byte
	for i := range 9000 { // more keys than a command locks, so it claims them
		keys = append(keys, fmt.Appendf(nil, "k%d", i))
		require.NoError(t, p.handle.Put(0, keys[i], entry.String, []byte("v"), entry.NoExpiry))
	}
	c := &conn{}
	_, pump := p.source.PSync(call(1, c))
	defer pump.Closed()
	looked := false
	p.handle.EachString(0, keys, func([]byte, bool) bool {
		for ; !looked; looked = true {
			sent, more, err := fill(t, pump, transport.PumpMost)
			require.NoError(t, err)
			require.Empty(t, sent)
			require.False(t, more)
			require.Zero(t, c.wakes.Load())
			p.clock.Advance(time.Millisecond)
			require.Equal(t, int64(1), c.wakes.Load())
		}
		return true
	})
	require.True(t, looked)
	f := newFollower(t, p.clock, nil, 0)
	p.flush()
	require.NoError(t, f.take(drain(t, pump)))
	require.True(t, f.whole)
	require.Equal(t, stateOf(p.ks), stateOf(f.ks))
}
