package transport

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// busyLoops is how busy the loops were at the last sample.
type busyLoops struct {
	mu     sync.Mutex      // guards what follows
	at     time.Duration   // of the sample, since born
	asleep []time.Duration // what each loop had slept by then
	ratios []float64
}

// busySample is the least time between two samples of how busy loops are.
const busySample = time.Second

// Busy implements [Looped].
func (e *Epoll) Busy() []float64 {
	b := &e.busy
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Since(e.born)
	passed := now - b.at
	if b.ratios != nil && passed < busySample {
		return slices.Clone(b.ratios)
	}
	if b.ratios == nil {
		b.asleep, b.ratios = make([]time.Duration, len(e.loops)), make([]float64, len(e.loops))
	}
	for i, l := range e.loops {
		asleep := time.Duration(l.told.asleep.Load())
		if since := time.Duration(l.told.since.Load()); since != 0 {
			asleep += max(0, now-since)
		}
		share := float64(asleep-b.asleep[i]) / float64(max(passed, 1))
		b.asleep[i], b.ratios[i] = asleep, min(max(0, 1-share), 1)
	}
	b.at = now
	return slices.Clone(b.ratios)
}

// errSilent says that a loop does not answer.
var errSilent = errors.New("an event loop does not answer")

// Answer implements [Looped].
func (e *Epoll) Answer(ctx context.Context) error {
	const look = 2 * time.Millisecond
	before := make([]int64, len(e.loops))
	for i, l := range e.loops {
		before[i] = l.told.rounds.Load()
		l.knock()
	}
	tick := time.NewTicker(look)
	defer tick.Stop()
	for i, l := range e.loops {
		for l.told.rounds.Load() == before[i] && !l.mail.isClosed() {
			select {
			case <-tick.C:
			case <-e.fin:
				return nil
			case <-ctx.Done():
				return errSilent
			}
		}
	}
	return nil
}
