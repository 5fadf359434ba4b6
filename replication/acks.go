package replication

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/transport"
)

// ackTable has what each replica has acknowledged, and who waits for how many of them. Only
// replicas whose state is whole count.
type ackTable struct {
	// urgent says that somebody waits whom the replicas that there are can satisfy.
	urgent atomic.Bool

	// goodUntil is the stopwatch reading up to which as many replicas are good as need says.
	goodUntil atomic.Int64

	mu       sync.Mutex // guards what follows
	need     int
	lag      time.Duration
	replicas map[int64]*replicaAcks
	whole    int      // how many of them count
	best     []uint64 // what those have acknowledged, the farthest first, unless stale
	stale    bool
	lines    map[int]line // by the number of replicas that is waited for
	woken    []transport.Peer
	heards   []time.Duration // scratch
}

// replicaAcks is what is known of a replica.
type replicaAcks struct {
	whole bool   // it was sent a whole state
	from  uint64 // the offset of that, once it was
	acked uint64
	heard time.Duration // when it last acknowledged from or more; never if negative
}

// patience is for how long somebody is taken to wait. Whoever still does is woken then and
// asks again. So what clients have left that are gone, or have given up, is forgotten.
const patience = 5 * time.Second

func newAckTable() *ackTable {
	l := &ackTable{replicas: map[int64]*replicaAcks{}, lines: map[int]line{}}
	l.require(0, 0)
	return l
}

// open adds a replica, which has everything before acked if it is whole.
func (l *ackTable) open(id int64, whole bool, acked uint64, now time.Duration) {
	l.mu.Lock()
	a := &replicaAcks{heard: -1}
	l.replicas[id] = a
	if whole {
		*a = replicaAcks{whole: true, from: acked, acked: acked, heard: now}
		l.whole++
	}
	l.settle()
}

// complete says that the full sync of a replica was sent, which ends at offset: it counts
// from now on, with what it acknowledges from there on.
func (l *ackTable) complete(id int64, offset uint64) {
	l.mu.Lock()
	if a := l.replicas[id]; a != nil && !a.whole {
		a.whole, a.from = true, offset
		l.whole++
	}
	l.settle()
}

// close removes a replica.
func (l *ackTable) close(id int64) {
	l.mu.Lock()
	if a := l.replicas[id]; a != nil {
		delete(l.replicas, id)
		if a.whole {
			l.whole--
		}
	}
	l.settle()
}

// acknowledge takes what a replica acknowledges. Before it has applied a whole state that only shows
// that it is there.
func (l *ackTable) acknowledge(id int64, acked uint64, now time.Duration) {
	l.mu.Lock()
	if a := l.replicas[id]; a != nil && a.whole && acked >= a.from {
		a.acked, a.heard = max(a.acked, acked), now
	}
	l.settle()
}

// settle wakes whoever has waited for long enough, and unlocks mu, which must be held.
func (l *ackTable) settle() {
	l.stale = true
	l.goodUntil.Store(int64(l.untilLate()))
	woken := l.woken[:0]
	l.woken = nil
	for n, waiting := range l.lines {
		for reached := l.reached(n); len(waiting) > 0 && waiting[0].offset <= reached; {
			woken = append(woken, waiting[0].p)
			waiting = waiting.pop()
		}
		l.keep(n, waiting)
	}
	l.wake(woken)
}

// keep stores a line that has changed. mu must be held.
func (l *ackTable) keep(n int, waiting line) {
	if len(waiting) == 0 {
		delete(l.lines, n)
		return
	}
	l.lines[n] = waiting
}

// wake unlocks mu, which must be held, and wakes all in woken, whose memory is used again.
func (l *ackTable) wake(woken []transport.Peer) {
	urgent := false
	for n := range l.lines {
		urgent = urgent || n <= l.whole
	}
	l.urgent.Store(urgent)
	l.mu.Unlock()
	if len(woken) == 0 {
		return
	}
	for _, p := range woken {
		p.Wake()
	}
	clear(woken)
	l.mu.Lock()
	l.woken = woken[:0]
	l.mu.Unlock()
}

// acks returns what the replicas that count have acknowledged, the farthest first. mu must
// be held.
func (l *ackTable) acks() []uint64 {
	if !l.stale {
		return l.best
	}
	l.best, l.stale = l.best[:0], false
	for _, a := range l.replicas {
		// One that was sent everything and has said nothing since may have refused it.
		if a.whole && a.heard >= 0 {
			l.best = append(l.best, a.acked)
		}
	}
	slices.SortFunc(l.best, func(a, b uint64) int { return cmp.Compare(b, a) })
	return l.best
}

// reached is up to where n replicas have everything. mu must be held.
func (l *ackTable) reached(n int) uint64 {
	if acks := l.acks(); n <= len(acks) {
		return acks[n-1]
	}
	return 0
}

// acked is how many replicas have everything before offset. mu must be held.
func (l *ackTable) acked(offset uint64) (n int) {
	acks := l.acks()
	for n < len(acks) && acks[n] >= offset {
		n++
	}
	return n
}

// count is acked for those who do not have mu.
func (l *ackTable) count(offset uint64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acked(offset)
}

// await has p woken once n replicas have everything before offset, unless they have.
func (l *ackTable) await(n int, offset uint64, p transport.Peer, now time.Duration) (acked int, o transport.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	acked = l.acked(offset)
	if acked >= n {
		return acked, transport.Kept
	}
	if p != nil {
		l.lines[n] = l.lines[n].push(waiting{offset, now, p})
		if n <= l.whole {
			l.urgent.Store(true)
		}
	}
	return acked, transport.Pending
}

// expire wakes whoever has waited since before since, or everybody if that is in the future.
func (l *ackTable) expire(since time.Duration) {
	l.mu.Lock()
	woken := l.woken[:0]
	l.woken = nil
	for n, waiting := range l.lines {
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
		l.keep(n, rest)
	}
	l.wake(woken)
}

// idle reports whether nobody waits.
func (l *ackTable) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lines) == 0
}

// good is how many replicas have acknowledged something since then, with a whole state.
func (l *ackTable) good(since time.Duration) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.replicas {
		if a.whole && a.heard >= 0 && a.heard >= since {
			n++
		}
	}
	return n
}

// require says how many replicas are to have acknowledged something within lag; 0 is none.
func (l *ackTable) require(need int, lag time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.need, l.lag = need, lag
	l.goodUntil.Store(int64(l.untilLate()))
}

// untilLate returns goodUntil, which is negative if there are not as many replicas. mu must be
// held.
func (l *ackTable) untilLate() time.Duration {
	if l.need <= 0 {
		return never
	}
	l.heards = l.heards[:0]
	for _, a := range l.replicas {
		if a.whole && a.heard >= 0 {
			l.heards = append(l.heards, a.heard)
		}
	}
	if len(l.heards) < l.need {
		return -1
	}
	slices.Sort(l.heards)
	heard := l.heards[len(l.heards)-l.need]
	return heard + min(l.lag, never-heard)
}

// of returns what is known of a replica.
func (l *ackTable) of(id int64) replicaAcks {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.replicas[id]; a != nil {
		return *a
	}
	return replicaAcks{heard: -1}
}
