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
// such acknowledgements. Only replicas that were sent a complete state count. Any goroutine may
// use an ackTable.
type ackTable struct {
	// urgent is true if at least one waiter needs no more replicas than whole. Further
	// acknowledgements of the present replicas can satisfy such a waiter.
	urgent atomic.Bool

	// goodUntil is the stopwatch reading until which at least need replicas have acknowledged
	// something within lag. It is negative if fewer than need replicas have acknowledged anything,
	// and [never] if need is 0.
	goodUntil atomic.Int64

	mu       sync.Mutex // mu guards the fields below
	need     int
	lag      time.Duration
	replicas map[int64]*replicaAcks
	whole    int      // number of the replicas that count, because they were sent a complete state
	best     []uint64 // offsets that the counted replicas have acknowledged, the largest first; valid unless stale
	stale    bool
	waiters  map[int]waitHeap // the waiters by the number of replicas for which they wait
	woken    []transport.Peer
	lastAcks []time.Duration // memory that goodDeadline reuses
}

// replicaAcks has the state of one replica in an ackTable.
type replicaAcks struct {
	whole   bool   // whether the replica was sent a complete state
	from    uint64 // offset of the stream at which the complete state was taken; valid if whole
	acked   uint64
	lastAck time.Duration // the stopwatch reading when the replica last acknowledged from or a later offset; negative before the first time
}

// maxWait is the time after which a waiter is removed and its peer is woken. If the peer still
// waits, it calls await again. So the waiters of clients that have disconnected or timed out do
// not accumulate.
const maxWait = 5 * time.Second

// newAckTable returns an empty table that requires no good replicas.
func newAckTable() *ackTable {
	t := &ackTable{replicas: map[int64]*replicaAcks{}, waiters: map[int]waitHeap{}}
	t.require(0, 0)
	return t
}

// open adds the replica with the client ID id. If whole is true, the replica has applied everything
// before acked at the stopwatch reading now, and counts at once. If whole is false, open ignores
// acked and now, and the replica counts only after complete.
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

// complete records that the full resynchronization of the replica id was sent, and that its state
// ends at offset. Acknowledgements of the replica count from now on, if they are of offset or a
// later offset.
func (t *ackTable) complete(id int64, offset uint64) {
	t.mu.Lock()
	if a := t.replicas[id]; a != nil && !a.whole {
		a.whole, a.from = true, offset
		t.whole++
	}
	t.settle()
}

// close removes the replica id. Its acknowledgements no longer count.
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

// acknowledge records that the replica id has applied everything before acked at the stopwatch
// reading now, and wakes the waiters that this satisfies. It ignores the acknowledgement if the
// replica was not sent a complete state, or if acked is less than the offset of that state.
func (t *ackTable) acknowledge(id int64, acked uint64, now time.Duration) {
	t.mu.Lock()
	if a := t.replicas[id]; a != nil && a.whole && acked >= a.from {
		a.acked, a.lastAck = max(a.acked, acked), now
	}
	t.settle()
}

// settle recomputes goodUntil and wakes the waiters that are satisfied now. The caller must hold
// mu; settle unlocks it.
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

// keep stores waiting as the waiters for n replicas, or removes the entry for n if waiting is
// empty. The caller must hold mu.
func (t *ackTable) keep(n int, waiting waitHeap) {
	if len(waiting) == 0 {
		delete(t.waiters, n)
		return
	}
	t.waiters[n] = waiting
}

// wake recomputes urgent, unlocks mu, which the caller must hold, and wakes all peers in woken.
// It keeps the memory of woken for the next call.
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
// caller must hold mu, and must not use the result after it has unlocked mu.
func (t *ackTable) acks() []uint64 {
	if !t.stale {
		return t.best
	}
	t.best, t.stale = t.best[:0], false
	for _, a := range t.replicas {
		// A replica that was sent everything and has not answered since does not count, because it
		// may have refused the state.
		if a.whole && a.lastAck >= 0 {
			t.best = append(t.best, a.acked)
		}
	}
	slices.SortFunc(t.best, func(a, b uint64) int { return cmp.Compare(b, a) })
	return t.best
}

// reached returns the offset before which at least n replicas have applied everything; 0 if fewer
// than n replicas count. The caller must hold mu.
func (t *ackTable) reached(n int) uint64 {
	if acks := t.acks(); n <= len(acks) {
		return acks[n-1]
	}
	return 0
}

// acked returns the number of replicas that have applied everything before offset. The caller must
// hold mu.
func (t *ackTable) acked(offset uint64) (n int) {
	acks := t.acks()
	for n < len(acks) && acks[n] >= offset {
		n++
	}
	return n
}

// count returns the number of replicas that have applied everything before offset. It locks mu.
func (t *ackTable) count(offset uint64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.acked(offset)
}

// await returns acked, the number of replicas that have applied everything before offset. The
// outcome o is Kept if acked is at least n. Otherwise o is Pending, and p, unless it is nil, is
// registered as a waiter: p is woken when n replicas have applied everything before offset, or at
// the latest when expire removes the waiter. now is the stopwatch reading. await does not block.
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

// expire removes and wakes all waiters that were registered at the stopwatch reading since or
// before. With [never] it wakes all waiters.
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

// good returns the number of replicas with a complete state that have acknowledged something at
// the stopwatch reading since or later.
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

// require sets need, the number of replicas that must have acknowledged something within the time
// lag, and recomputes goodUntil. A need of 0 requires none.
func (t *ackTable) require(need int, lag time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.need, t.lag = need, lag
	t.goodUntil.Store(int64(t.goodDeadline()))
}

// goodDeadline returns the new value of goodUntil: lag after the instant since which need replicas
// have acknowledged something. It returns [never] if no replica is needed, and -1 if fewer than
// need replicas have acknowledged anything. The caller must hold mu.
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

// of returns a copy of the state of the replica id. If there is no such replica, lastAck of the
// copy is -1 and all other fields are zero.
func (t *ackTable) of(id int64) replicaAcks {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.replicas[id]; a != nil {
		return *a
	}
	return replicaAcks{lastAck: -1}
}
