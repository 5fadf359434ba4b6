package epoll

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Load is counted in work: a turn costs about as much as 1.5 KiB of input, and a
// unit is 64 bytes.
const (
	workPerTurn  = 24
	workPerBytes = 64
)

// placement chooses loops for new connections: the one with the least to do, not
// the one with the fewest connections, of which most may be idle.
type placement struct {
	mu      sync.Mutex
	last    time.Time
	sampled []int64 // work of each loop at the last sample
	rate    []int64 // work per second of each loop up to then
	fresh   []int64 // connections given to each loop since
}

// sampleEvery is how old a loop's measured load may become while connections arrive.
const sampleEvery = 100 * time.Millisecond

func newPlacement(loops int) *placement {
	return &placement{
		sampled: make([]int64, loops),
		rate:    make([]int64, loops),
		fresh:   make([]int64, loops),
	}
}

// assign hands c, which may have a session or only a rejection to linger over, to a
// loop. No loop ends before the last accept.
func (t *Transport) assign(c *conn) {
	t.loops[t.placement.pick(t.loops)].arrive(c)
}

// pick returns the index of the least loaded loop. Connections placed since the last
// sample count as average ones; among equals, fewer connections win.
func (p *placement) pick(loops []*loop) int {
	if len(loops) == 1 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sample(loops, time.Now())
	rate, conns := int64(0), int64(0)
	for i, l := range loops {
		rate += p.rate[i]
		conns += l.conns.Load()
	}
	average := rate / max(conns, 1)
	best, bestLoad, bestConns := 0, int64(0), int64(0)
	for i, l := range loops {
		load, conns := p.rate[i]+p.fresh[i]*average, l.conns.Load()
		// A tenth more or less is noise, not load.
		lighter := load < bestLoad-bestLoad/10
		equal := load <= bestLoad+bestLoad/10
		if i == 0 || lighter || (equal && conns < bestConns) {
			best, bestLoad, bestConns = i, load, conns
		}
	}
	p.fresh[best]++
	return best
}

func (p *placement) sample(loops []*loop, now time.Time) {
	elapsed := now.Sub(p.last)
	if elapsed < sampleEvery {
		return
	}
	p.last = now
	for i, l := range loops {
		work := l.published.work.Load()
		p.rate[i] = (work - p.sampled[i]) * int64(time.Second) / int64(elapsed)
		p.sampled[i] = work
		p.fresh[i] = 0
	}
}

const (
	// balanceAfter is how much work, a few thousand turns, a loop does before it
	// compares itself with the others. A loop that does less has nothing to hand over.
	balanceAfter = 4096 * workPerTurn
	// balanceEvery is how long it watches before it does.
	balanceEvery = 100 * time.Millisecond
	// maxMoves is how many connections one comparison hands over.
	maxMoves = 4
)

// balance is what a loop knows of the others' load.
type balance struct {
	at    time.Time
	next  int64   // own work at which to compare again
	seen  []int64 // work of each loop at the last comparison
	epoch uint16  // number of the interval; connections count their work in it
}

// balance hands busy connections to the loop that has had the least to do, if that
// is much less: where connections are busy only later, or unevenly, placing new
// ones well is not enough. events is the number of this round's events: a
// connection worth moving is among them sooner or later.
func (l *loop) balance(events int) {
	b := &l.bal
	if l.tally.work < b.next || len(l.t.loops) == 1 || l.draining {
		return
	}
	b.next = l.tally.work + balanceAfter
	now := time.Now()
	elapsed := now.Sub(b.at)
	if elapsed < balanceEvery {
		return
	}
	b.at = now
	mine, least, to := int64(0), int64(0), (*loop)(nil)
	for i, other := range l.t.loops {
		work := other.published.work.Load()
		done := work - b.seen[i]
		b.seen[i] = work
		switch {
		case other == l:
			mine = done
		case to == nil || done < least:
			least, to = done, other
		}
	}
	// A long interval means little work, and a quarter more is not worth a move.
	if elapsed < 10*balanceEvery && mine-least > mine/4 {
		l.shed(events, (mine-least)/2, to)
	}
	b.epoch++
}

// shed moves connections that did up to surplus work in this interval.
func (l *loop) shed(events int, surplus int64, to *loop) {
	for moves := 0; moves < maxMoves; moves++ {
		var best *conn
		for i := range l.events[:events] {
			e := &l.events[i]
			if e.Fd == wakeSlot {
				continue
			}
			c := l.slots[e.Fd]
			if c == nil || c.fd != e.Pad || c.epoch != l.bal.epoch || !c.movable() {
				continue
			}
			if int64(c.work) <= surplus && (best == nil || c.work > best.work) {
				best = c
			}
		}
		if best == nil {
			return
		}
		surplus -= int64(best.work)
		l.move(best, to)
	}
}

// movable reports whether c is in none of its loop's lists but its slot.
func (c *conn) movable() bool {
	return c.session != nil && !c.queued && c.watched == noSlot && c.sent()
}

// move hands c over. Mail that still comes here is sent after it.
func (l *loop) move(c *conn, to *loop) {
	if unix.EpollCtl(l.ep, unix.EPOLL_CTL_DEL, int(c.fd), nil) != nil {
		return // it stays
	}
	l.vacate(c)
	if !to.arrive(c) {
		l.arrive(c) // that one has ended meanwhile
		return
	}
	l.tally.moved++
}
