// Package clock keeps a clock that many servers share: that of the engine, as each of them
// has measured it. Servers that measure the same engine differ by about half of the time
// that a message takes, and none of them needs a clock of its own that is right.
//
// It reads no clock and asks nobody: it is given samples, and how much time has passed.
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
	// slew is by how much of the time that passes the clock is moved towards a new
	// offset: 500 ppm, or half a millisecond a second.
	slew = 2000
	// samplesKept is how many samples of a node are looked at for the one that took least.
	samplesKept = 8
	// sampleLasts is how long a sample counts. A node that is gone has no say.
	sampleLasts = 15 * time.Second
)

// Sample is what a node said its clock shows, between two readings of a stopwatch.
type Sample struct {
	Node           string
	Sent, Received time.Duration
	Shown          limit.Instant
}

// offset is what has to be added to the stopwatch, if the node read its clock half-way.
func (s Sample) offset() int64 {
	half := s.Sent + (s.Received-s.Sent)/2
	return limit.SatSub(int64(s.Shown), int64(half))
}

// Clock is the shared clock. Any goroutine may use it.
type Clock struct {
	// MaxSkew is how far the engine's clock may move at once before that is a jump.
	MaxSkew time.Duration
	// OnJump is called, from Add, once for each jump.
	OnJump func(by time.Duration)

	course atomic.Pointer[course]
	jumps  atomic.Int64

	// read says that somebody knows the time: it cannot go back any more.
	read atomic.Bool

	mu      sync.Mutex
	samples map[string][]Sample // of each node, the newest last
	jumped  bool                // the last sample was beyond MaxSkew, and that was told
}

// course is how the clock goes: at from of the stopwatch it was offset ahead of it, and
// since then it has moved towards target.
type course struct {
	from           time.Duration
	offset, target int64
}

// at is the offset when the stopwatch shows elapsed.
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

// Ready reports whether there was a sample, so that there is a time at all.
func (c *Clock) Ready() bool { return c.course.Load() != nil }

// Now is the instant when the stopwatch shows elapsed; false before the first sample. It
// never steps back.
func (c *Clock) Now(elapsed time.Duration) (limit.Instant, bool) {
	if !c.read.Load() && c.Ready() {
		c.mu.Lock() // so that no sample is half taken into account
		c.read.Store(true)
		c.mu.Unlock()
	}
	way := c.course.Load()
	if way == nil {
		return 0, false
	}
	return limit.Instant(limit.SatAdd(int64(elapsed), way.at(elapsed))), true
}

// Add takes a sample into account when the stopwatch shows elapsed. Samples set the clock
// until somebody has asked for the time; from then on they move it slowly. So one node whose
// clock is wrong does no harm if it is the first to answer.
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
	target := c.agreed(min(elapsed, s.Received)) // the process may have been stopped since
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

// noteJump tells of a jump once, until the clock has caught up with it.
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

// agreed is the median over the nodes of the offset that was measured best.
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

// State is what people want to know of the clock.
type State struct {
	Ready bool
	// Offset is by how much the clock is ahead of the stopwatch, and Slewing how far it has
	// still to go.
	Offset, Slewing time.Duration
	// Spread is how far apart the nodes' own clocks are.
	Spread time.Duration
	Nodes  int
	Jumps  int64
}

// State describes the clock when the stopwatch shows elapsed.
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
