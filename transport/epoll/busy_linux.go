package epoll

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// busyLoops has the last sample of the times for which the loops have slept.
type busyLoops struct {
	mu     sync.Mutex      // mu guards the fields below
	at     time.Duration   // time of the sample, measured from Transport.born
	asleep []time.Duration // total time for which each loop had slept when the sample was taken
	ratios []float64
}

// busySample is the minimum time between two samples.
const busySample = time.Second

// Busy implements [transport.Looped].
func (t *Transport) Busy() []float64 {
	b := &t.busy
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Since(t.born)
	passed := now - b.at
	if b.ratios != nil && passed < busySample {
		return slices.Clone(b.ratios)
	}
	if b.ratios == nil {
		b.asleep, b.ratios = make([]time.Duration, len(t.loops)), make([]float64, len(t.loops))
	}
	for i, l := range t.loops {
		asleep := time.Duration(l.published.asleep.Load())
		if since := time.Duration(l.published.since.Load()); since != 0 {
			asleep += max(0, now-since)
		}
		share := float64(asleep-b.asleep[i]) / float64(max(passed, 1))
		b.asleep[i], b.ratios[i] = asleep, min(max(0, 1-share), 1)
	}
	b.at = now
	return slices.Clone(b.ratios)
}

// errSilent means that a loop has not completed a round in time.
var errSilent = errors.New("an event loop does not answer")

// Answer implements [transport.Looped].
func (t *Transport) Answer(ctx context.Context) error {
	const look = 2 * time.Millisecond
	before := make([]int64, len(t.loops))
	for i, l := range t.loops {
		before[i] = l.published.rounds.Load()
		l.wake()
	}
	tick := time.NewTicker(look)
	defer tick.Stop()
	for i, l := range t.loops {
		for l.published.rounds.Load() == before[i] && !l.mail.isClosed() {
			select {
			case <-tick.C:
			case <-t.fin:
				return nil
			case <-ctx.Done():
				return errSilent
			}
		}
	}
	return nil
}
