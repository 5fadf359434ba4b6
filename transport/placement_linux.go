package transport

import (
	"sync"
	"time"
)

// sampleEvery is how old a loop's measured load may become while connections arrive.
const sampleEvery = 100 * time.Millisecond

// placement chooses loops for new connections: the one with the least to do, not
// the one with the fewest connections, of which most may be idle.
type placement struct {
	mu      sync.Mutex
	last    time.Time
	sampled []int64 // turns of each loop at the last sample
	rate    []int64 // turns per second of each loop up to then
	fresh   []int64 // connections given to each loop since
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
		turns := l.told.turns.Load()
		p.rate[i] = (turns - p.sampled[i]) * int64(time.Second) / max(int64(elapsed), 1)
		p.sampled[i] = turns
		p.fresh[i] = 0
	}
}
