// Package clock provides a clock that many servers share: that of the engine, as each server has
// measured it. Servers that measure the same engine differ by about half of the time that a message
// takes, and none of them needs a correct clock of its own.
//
// The package reads no clock and sends no request: its callers pass samples and the elapsed time.
package clock

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/limit"
)

const (
	// slew bounds the speed at which the clock moves towards a new offset, as a divisor of elapsed
	// time: 500 ppm, or half a millisecond per second.
	slew = 2000
	// samplesKept is the number of samples of a node among which the one with the shortest round
	// trip is used.
	samplesKept = 8
	// sampleLasts is how long a sample is used. A node that is gone has no influence after that.
	sampleLasts = 15 * time.Second
)

// Sample is the reading of a node's clock, taken between two readings of a stopwatch.
type Sample struct {
	Node           string
	Sent, Received time.Duration
	Shown          limit.Instant
}

// offset returns the difference from the stopwatch, assuming that the node read its clock half-way.
func (s Sample) offset() int64 {
	half := s.Sent + (s.Received-s.Sent)/2
	return limit.SatSub(int64(s.Shown), int64(half))
}

// Clock is the shared clock. Any goroutine may use it.
type Clock struct {
	// MaxSkew is by how much the engine's clock may move at once before that counts as a jump.
	MaxSkew time.Duration
	// OnJump is called, from Add, once for each jump.
	OnJump func(by time.Duration)

	course atomic.Pointer[course]
	jumps  atomic.Int64

	// read says that a caller has read the time: from then on it cannot go back.
	read atomic.Bool

	mu      sync.Mutex
	samples map[string][]Sample // of each node, the newest last
	jumped  bool                // the last sample was beyond MaxSkew, and OnJump was called
}

// course describes how the clock runs: when the stopwatch showed from, the clock was offset ahead
// of it, and since then it has moved towards target.
type course struct {
	from           time.Duration
	offset, target int64
}

// at returns the offset when the stopwatch shows elapsed.
func (c *course) at(elapsed time.Duration) int64 {
	most := max(0, int64(elapsed-c.from)) / slew
	switch d := limit.SatSub(c.target, c.offset); {
	case d > most:
		return c.offset + most
	case d < -most:
		return c.offset - most
	}
	return c.target
}

// Ready reports whether there was a sample, so that the clock has a time.
func (c *Clock) Ready() bool { return c.course.Load() != nil }

// Now returns the instant when the stopwatch shows elapsed; false before the first sample. It never
// goes back.
func (c *Clock) Now(elapsed time.Duration) (limit.Instant, bool) {
	if !c.read.Load() && c.Ready() {
		c.mu.Lock() // wait until Add has completed
		c.read.Store(true)
		c.mu.Unlock()
	}
	way := c.course.Load()
	if way == nil {
		return 0, false
	}
	return limit.Instant(limit.SatAdd(int64(elapsed), way.at(elapsed))), true
}

// Add adds a sample when the stopwatch shows elapsed. Until a caller has read the time, samples set
// the clock; from then on they move it slowly. So a single node with a wrong clock does no harm if
// it is the first to answer.
func (c *Clock) Add(elapsed time.Duration, s Sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.samples == nil {
		c.samples = map[string][]Sample{}
	}
	kept := append(c.samples[s.Node], s)
	if len(kept) > samplesKept {
		kept = slices.Delete(kept, 0, len(kept)-samplesKept)
	}
	c.samples[s.Node] = kept
	target := c.agreed(min(elapsed, s.Received)) // the process may have been stopped after Received
	way := c.course.Load()
	if way == nil || !c.read.Load() {
		c.course.Store(&course{from: elapsed, offset: target, target: target})
		return
	}
	elapsed = max(elapsed, way.from)
	now := way.at(elapsed)
	c.course.Store(&course{from: elapsed, offset: now, target: target})
	c.noteJump(time.Duration(limit.SatSub(target, now)))
}

// noteJump calls OnJump once for a jump, until the clock has caught up with it.
func (c *Clock) noteJump(ahead time.Duration) {
	if c.MaxSkew <= 0 || ahead.Abs() <= c.MaxSkew {
		c.jumped = false
		return
	}
	if c.jumped {
		return
	}
	c.jumped = true
	c.jumps.Add(1)
	if c.OnJump != nil {
		c.OnJump(ahead)
	}
}

// agreed returns the median of the nodes' offsets, each from the node's best sample.
func (c *Clock) agreed(now time.Duration) int64 {
	offsets := make([]int64, 0, len(c.samples))
	for node, all := range c.samples {
		all = slices.DeleteFunc(all, func(s Sample) bool { return now-s.Received > sampleLasts })
		if c.samples[node] = all; len(all) == 0 {
			delete(c.samples, node)
			continue
		}
		best := slices.MinFunc(all, func(a, b Sample) int { return cmp.Compare(a.Received-a.Sent, b.Received-b.Sent) })
		offsets = append(offsets, best.offset())
	}
	slices.Sort(offsets)
	n := len(offsets)
	low, high := offsets[(n-1)/2], offsets[n/2]
	return low + limit.SatSub(high, low)/2
}

// State describes the clock for operators.
type State struct {
	Ready bool
	// Offset is by how much the clock is ahead of the stopwatch, and Slewing by how much it still
	// has to move.
	Offset, Slewing time.Duration
	// Spread is the difference between the fastest and the slowest clock of the nodes.
	Spread time.Duration
	Nodes  int
	Jumps  int64
}

// State returns the state of the clock when the stopwatch shows elapsed.
func (c *Clock) State(elapsed time.Duration) State {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := State{Jumps: c.jumps.Load()}
	way := c.course.Load()
	if way == nil {
		return s
	}
	now := way.at(elapsed)
	s.Ready, s.Offset, s.Slewing = true, time.Duration(now), time.Duration(limit.SatSub(way.target, now))
	low, high := int64(math.MaxInt64), int64(math.MinInt64)
	for _, all := range c.samples {
		o := all[len(all)-1].offset()
		low, high, s.Nodes = min(low, o), max(high, o), s.Nodes+1
	}
	if s.Nodes > 0 {
		s.Spread = time.Duration(limit.SatSub(high, low))
	}
	return s
}
