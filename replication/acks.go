package replication

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/transport"
)

// ackTable records the offset that each replica has acknowledged, and the callers that wait for
// such acknowledgements. Only replicas that were sent a complete state count.
type ackTable struct {
	// urgent is set while a waiter exists that the connected replicas can satisfy.
	urgent atomic.Bool

	// goodUntil is the stopwatch reading until which at least need replicas are good.
	goodUntil atomic.Int64

	mu       sync.Mutex // guards the fields below
	need     int
	lag      time.Duration
	replicas map[int64]*replicaAcks
	whole    int      // the number of replicas that were sent a complete state
	best     []uint64 // the offsets that those have acknowledged, the largest first, unless stale
	stale    bool
	waiters  map[int]waitHeap // by the number of replicas that they wait for
	woken    []transport.Peer
	lastAcks []time.Duration // scratch space of goodDeadline
}

// replicaAcks is the state of one replica in an ackTable.
type replicaAcks struct {
	whole   bool   // the replica was sent a complete state
	from    uint64 // the offset of that state; valid if whole
	acked   uint64
	lastAck time.Duration // when it last acknowledged from or a later offset; negative if never
}

// maxWait is how long a waiter is kept. After that it is woken and calls await again if it still
// waits. So the waiters of disconnected clients and of clients that timed out do not accumulate.
const maxWait = 5 * time.Second

func newAckTable() *ackTable {
	t := &ackTable{replicas: map[int64]*replicaAcks{}, waiters: map[int]waitHeap{}}
	t.require(0, 0)
	return t
}

// open adds a replica. If whole is set, the replica has everything before acked.
func (t *ackTable) open(id int64, whole bool, acked uint64, now time.Duration) {
	t.mu.Lock()
	a := &replicaAcks{lastAck: -1}
	t.replicas[id] = a
	if whole {
		*a = replicaAcks{whole: true, from: acked, acked: acked, lastAck: now}
		t.whole++
	}
	t.settle()
}

// complete records that the full resynchronization of a replica was sent and ends at offset. The
// replica counts from now on, with the offsets from there on that it acknowledges.
func (t *ackTable) complete(id int64, offset uint64) {
	t.mu.Lock()
	if a := t.replicas[id]; a != nil && !a.whole {
		a.whole, a.from = true, offset
		t.whole++
	}
	t.settle()
}

// close removes a replica.
func (t *ackTable) close(id int64) {
	t.mu.Lock()
	if a := t.replicas[id]; a != nil {
		delete(t.replicas, id)
		if a.whole {
			t.whole--
		}
	}
	t.settle()
}

// acknowledge records that a replica has applied everything before acked. It ignores the
// acknowledgement of a replica that has not applied a complete state yet.
func (t *ackTable) acknowledge(id int64, acked uint64, now time.Duration) {
	t.mu.Lock()
	if a := t.replicas[id]; a != nil && a.whole && acked >= a.from {
		a.acked, a.lastAck = max(a.acked, acked), now
	}
	t.settle()
}

// settle recomputes what has been acknowledged and wakes the waiters that this satisfies. The
// caller must hold mu; settle unlocks it.
func (t *ackTable) settle() {
	t.stale = true
	t.goodUntil.Store(int64(t.goodDeadline()))
	woken := t.woken[:0]
	t.woken = nil
	for n, waiting := range t.waiters {
		for reached := t.reached(n); len(waiting) > 0 && waiting[0].offset <= reached; {
			woken = append(woken, waiting[0].p)
			waiting = waiting.pop()
		}
		t.keep(n, waiting)
	}
	t.wake(woken)
}

// keep stores a heap of waiters that has changed. The caller must hold mu.
func (t *ackTable) keep(n int, waiting waitHeap) {
	if len(waiting) == 0 {
		delete(t.waiters, n)
		return
	}
	t.waiters[n] = waiting
}

// wake updates urgent, unlocks mu, which the caller must hold, and wakes all peers in woken. It
// keeps the memory of woken for the next call.
func (t *ackTable) wake(woken []transport.Peer) {
	urgent := false
	for n := range t.waiters {
		urgent = urgent || n <= t.whole
	}
	t.urgent.Store(urgent)
	t.mu.Unlock()
	if len(woken) == 0 {
		return
	}
	for _, p := range woken {
		p.Wake()
	}
	clear(woken)
	t.mu.Lock()
	t.woken = woken[:0]
	t.mu.Unlock()
}

// acks returns the offsets that the counted replicas have acknowledged, the largest first. The
// caller must hold mu.
func (t *ackTable) acks() []uint64 {
	if !t.stale {
		return t.best
	}
	t.best, t.stale = t.best[:0], false
	for _, a := range t.replicas {
		// A replica that was sent everything and has not answered since may have refused it.
		if a.whole && a.lastAck >= 0 {
			t.best = append(t.best, a.acked)
		}
	}
	slices.SortFunc(t.best, func(a, b uint64) int { return cmp.Compare(b, a) })
	return t.best
}

// reached returns the offset before which n replicas have everything. The caller must hold mu.
func (t *ackTable) reached(n int) uint64 {
	if acks := t.acks(); n <= len(acks) {
		return acks[n-1]
	}
	return 0
}

// acked returns how many replicas have everything before offset. The caller must hold mu.
func (t *ackTable) acked(offset uint64) (n int) {
	acks := t.acks()
	for n < len(acks) && acks[n] >= offset {
		n++
	}
	return n
}

// count is acked for callers that do not hold mu.
func (t *ackTable) count(offset uint64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.acked(offset)
}

// await returns how many replicas have everything before offset. If these are fewer than n, it
// returns Pending and, unless p is nil, registers p, which is woken once there are n.
func (t *ackTable) await(n int, offset uint64, p transport.Peer, now time.Duration) (acked int, o transport.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	acked = t.acked(offset)
	if acked >= n {
		return acked, transport.Kept
	}
	if p != nil {
		t.waiters[n] = t.waiters[n].push(waiter{offset, now, p})
		if n <= t.whole {
			t.urgent.Store(true)
		}
	}
	return acked, transport.Pending
}

// expire wakes all waiters that were registered at since or before. With [never] it wakes all.
func (t *ackTable) expire(since time.Duration) {
	t.mu.Lock()
	woken := t.woken[:0]
	t.woken = nil
	for n, waiting := range t.waiters {
		rest := waiting[:0]
		for _, w := range waiting {
			if w.since <= since {
				woken = append(woken, w.p)
			} else {
				rest = append(rest, w)
			}
		}
		clear(waiting[len(rest):])
		rest.order()
		t.keep(n, rest)
	}
	t.wake(woken)
}

// idle reports whether there are no waiters.
func (t *ackTable) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiters) == 0
}

// good returns how many replicas have acknowledged something at since or later, with a complete
// state.
func (t *ackTable) good(since time.Duration) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.replicas {
		if a.whole && a.lastAck >= 0 && a.lastAck >= since {
			n++
		}
	}
	return n
}

// require sets how many replicas have to acknowledge something within lag. 0 requires none.
func (t *ackTable) require(need int, lag time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.need, t.lag = need, lag
	t.goodUntil.Store(int64(t.goodDeadline()))
}

// goodDeadline computes goodUntil. It is negative if fewer than need replicas have acknowledged
// anything. The caller must hold mu.
func (t *ackTable) goodDeadline() time.Duration {
	if t.need <= 0 {
		return never
	}
	t.lastAcks = t.lastAcks[:0]
	for _, a := range t.replicas {
		if a.whole && a.lastAck >= 0 {
			t.lastAcks = append(t.lastAcks, a.lastAck)
		}
	}
	if len(t.lastAcks) < t.need {
		return -1
	}
	slices.Sort(t.lastAcks)
	lastAck := t.lastAcks[len(t.lastAcks)-t.need]
	return lastAck + min(t.lag, never-lastAck)
}

// of returns a copy of the state of a replica.
func (t *ackTable) of(id int64) replicaAcks {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.replicas[id]; a != nil {
		return *a
	}
	return replicaAcks{lastAck: -1}
}
