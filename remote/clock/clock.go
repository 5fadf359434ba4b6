// Package clock provides a clock that many servers share: the clock of their engine, which each
// server measures. The engine is the Valkey or Redis in which the servers store their limits. The
// clocks of servers that measure the same engine differ by about half of the time that a message
// takes, and no server needs a correct clock of its own.
//
// The package reads no clock and sends no request: its callers pass samples and the elapsed time
// of a stopwatch.
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
	// slew bounds the speed at which the clock moves towards a new offset, as a divisor of the
	// elapsed time: 500 ppm, or half a millisecond per second.
	slew = 2000
	// samplesKept is the maximum number of samples that are kept of a node. The one with the
	// shortest round trip is used.
	samplesKept = 8
	// sampleLasts is the time after which a sample is no longer used, so that a node that no
	// longer answers has no influence.
	sampleLasts = 15 * time.Second
)

// Sample is a reading of a node's clock, Shown. The stopwatch showed Sent before the request and
// Received after the reply.
type Sample struct {
	Node           string
	Sent, Received time.Duration
	Shown          limit.Instant
}

// offset returns by how many nanoseconds the node's clock is ahead of the stopwatch, assuming
// that the node read its clock half-way between Sent and Received.
func (s Sample) offset() int64 {
	half := s.Sent + (s.Received-s.Sent)/2
	return limit.SatSub(int64(s.Shown), int64(half))
}

// Clock is the shared clock. Any number of goroutines may use it. The zero value is ready for
// use, without a time before the first sample.
type Clock struct {
	// MaxSkew is the largest difference between the engine's clock and this clock that does not
	// count as a jump; 0 means that there are no jumps.
	MaxSkew time.Duration
	// OnJump is called by Add once for each jump; by is the time by which the engine's clock is
	// ahead. It may be nil. It must not call methods of the Clock that lock, such as State.
	OnJump func(by time.Duration)

	course atomic.Pointer[course]
	jumps  atomic.Int64

	// read says that a caller has read the time. From then on Add only moves the clock slowly.
	read atomic.Bool

	mu      sync.Mutex
	samples map[string][]Sample // the samples of each node, the newest last; guarded by mu
	jumped  bool                // the last sample was beyond MaxSkew, and OnJump was called; guarded by mu
}

// course describes how the clock runs. When the stopwatch showed from, the clock was ahead of it
// by offset nanoseconds. Since then the offset has moved towards target.
type course struct {
	from           time.Duration
	offset, target int64
}

// at returns the offset in nanoseconds when the stopwatch shows elapsed. The offset changes from
// c.offset towards c.target, by at most a slew-th of the time since c.from.
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

// Now returns the instant when the stopwatch shows elapsed. The second result is false before the
// first sample. After the first call that returns a time, Add only moves the clock slowly, so that
// the time does not jump back.
func (c *Clock) Now(elapsed time.Duration) (limit.Instant, bool) {
	if !c.read.Load() && c.Ready() {
		c.mu.Lock() // locking waits until Add has returned
		c.read.Store(true)
		c.mu.Unlock()
	}
	way := c.course.Load()
	if way == nil {
		return 0, false
	}
	return limit.Instant(limit.SatAdd(int64(elapsed), way.at(elapsed))), true
}

// Add adds the sample s when the stopwatch shows elapsed. Until a caller has read the time,
// samples set the clock. From then on they only move it slowly. So a node with a wrong clock does
// no harm if it is the first to answer and other nodes answer before the time is read.
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
	target := c.agreed(min(elapsed, s.Received)) // the process may have been suspended since Received
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

// noteJump calls OnJump if the engine's clock differs from this clock by more than MaxSkew; ahead
// is the difference. It does not call OnJump again until the clock has caught up. The caller holds
// mu.
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

// agreed returns the median of the nodes' offsets in nanoseconds, each from the node's best
// sample. It drops samples that are too old at the time now of the stopwatch.
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

// State describes the clock for operators. Ready says that the clock has a time, Nodes is the
// number of nodes with samples, and Jumps the number of jumps since the start.
type State struct {
	Ready bool
	// Offset is the time by which the clock is ahead of the stopwatch. Slewing is the change of
	// Offset that is still to come.
	Offset, Slewing time.Duration
	// Spread is the difference between the fastest and the slowest clock of the nodes, by the
	// newest sample of each node.
	Spread time.Duration
	Nodes  int
	Jumps  int64
}

// State returns the state of the clock when the stopwatch shows elapsed. Unlike Now, it has no
// effect on later samples.
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
