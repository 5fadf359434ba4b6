package epoll

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A unit of work is the cost of 64 bytes of input. A turn costs about as much as 1.5 KiB of input.
const (
	workPerTurn  = 24
	workPerBytes = 64
)

// placement chooses loops for new connections. It takes the loop with the least work and not the
// one with the fewest connections, because most connections may be idle.
type placement struct {
	mu      sync.Mutex
	last    time.Time
	sampled []int64 // work of each loop at the last sample
	rate    []int64 // units of work per second of each loop, between the last two samples
	fresh   []int64 // number of connections given to each loop since the last sample
}

// sampleEvery is the maximum age of the measured load while connections arrive.
const sampleEvery = 100 * time.Millisecond

func newPlacement(loops int) *placement {
	return &placement{
		sampled: make([]int64, loops),
		rate:    make([]int64, loops),
		fresh:   make([]int64, loops),
	}
}

// assign hands c to a loop. c may have a session, or only linger after a rejection. arrive cannot
// fail here, because no loop ends before the last accept.
func (t *Transport) assign(c *conn) {
	t.loops[t.placement.pick(t.loops)].arrive(c)
}

// pick returns the index of the least loaded loop. Connections placed since the last sample count
// as average ones. If the load is about equal, the loop with fewer connections wins.
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
		// A difference of a tenth is noise, not load.
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
	// balanceAfter is the amount of work, a few thousand turns, after which a loop compares its
	// work with the work of the other loops. A loop with less work has nothing to hand over.
	balanceAfter = 4096 * workPerTurn
	// balanceEvery is the minimum time between two comparisons.
	balanceEvery = 100 * time.Millisecond
	// maxMoves is the maximum number of connections that a loop hands over after one comparison.
	maxMoves = 4
)

// balance holds the state in which a loop compares its work with the work of the other loops.
type balance struct {
	at    time.Time // the time of the last comparison
	next  int64     // the loop's own work at which it compares again
	seen  []int64   // work of each loop at the last comparison
	epoch uint16    // number of the interval in which connections count their work
}

// balance hands busy connections over to the loop with the least work, if that loop has much less
// work than l. Placing new connections well is not enough, because connections may become busy only
// later, or unevenly. events is the number of events of this round. Only connections with an event
// are moved: a busy connection is among them sooner or later.
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
	// A long interval means little work. A difference of a quarter is not worth a move.
	if elapsed < 10*balanceEvery && mine-least > mine/4 {
		l.shed(events, (mine-least)/2, to)
	}
	b.epoch++
}

// shed moves up to maxMoves connections to the loop to. In this interval they caused an amount of
// work of at most surplus together. Only connections of the first events events are moved.
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

// movable reports whether c may move to another loop: it has a session, all its output has been
// sent, and no list of the loop but the slots contains it.
func (c *conn) movable() bool {
	return c.session != nil && !c.queued && c.watched == noSlot && c.sent()
}

// move hands c over to another loop. Mail about c that still arrives here is passed on. c stays on
// this loop if the kernel refuses or the other loop has ended.
func (l *loop) move(c *conn, to *loop) {
	if unix.EpollCtl(l.ep, unix.EPOLL_CTL_DEL, int(c.fd), nil) != nil {
		return // the connection stays on this loop
	}
	l.vacate(c)
	if !to.arrive(c) {
		l.arrive(c) // the other loop has ended in the meantime
		return
	}
	l.tally.moved++
}
