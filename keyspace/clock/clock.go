package clock

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Clock is the source of instants. Instants of [Clock.Now] never go back. They are the wall time at
// the start plus the time for which the machine has been up since, suspended or not, so that a step
// of the wall clock does not change a decision. The civil instant is the time of day that users
// mean; it differs by a constant unless the wall clock was stepped.
type Clock interface {
	Now() limit.Instant
	// Civil converts an instant into the civil one, and Derived is its inverse.
	Civil(limit.Instant) limit.Instant
	Derived(limit.Instant) limit.Instant
	// AfterFunc calls f in a goroutine of its own once d has passed.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a pending call.
type Timer interface {
	// Stop prevents the call, if it has not begun, and reports whether it has prevented it.
	Stop() bool
}

// Options configure a [System]. The zero value is valid.
type Options struct {
	// Start is the first instant, for a server that continues from an earlier run; 0 means the wall
	// clock's time.
	Start limit.Instant
	// OnStep is called from Sample, once for every step of the wall clock that Sample notices, with
	// its size. A step of a second or less does not count.
	OnStep func(step time.Duration)

	sources *sources // set by tests
}

// System is the clock of a real server. Its Sample must be called at least every 100 ms, as
// keyspace.Keyspace.Run does. It runs on its own or follows the clock of another server: see
// [System.Follow].
type System struct {
	src    sources
	onStep func(time.Duration)
	// offset is the instant at which mono was 0: that of the start, advanced by the time for which
	// the machine was suspended since, and changed by Set and Follow. It is stored under mu.
	offset atomic.Int64
	// follows makes Now compare with latest, the latest instant that was ever read, since offset
	// may have been decreased.
	follows atomic.Bool
	latest  atomic.Int64
	// boot0 is boot minus mono at the start.
	boot0 int64
	// civil is added to an instant to make it civil.
	civil atomic.Int64
	// step is the present difference between the wall clock and the instants, if that is more than
	// a second: the gauge clock_step_seconds.
	step atomic.Int64

	mu sync.Mutex // guards what follows
	// suspended is by how much boot and mono differ more than at the start: the time for which the
	// machine was suspended since.
	suspended int64
	primary   primary
	// moved is the sum of the changes of offset by Follow since civil was last adapted.
	moved int64
	// pending is a difference from civil time that began at since and still lasts.
	pending int64
	since   limit.Instant
}

const (
	// stepSize is the difference of the wall clock beyond which it counts as stepped.
	stepSize = int64(time.Second)
	// stepLasts is how long a step must last before civil time follows it.
	stepLasts = 60 * time.Second
)

// NewSystem returns a running clock.
func NewSystem(o Options) *System {
	c := &System{src: o.clocks(), onStep: o.OnStep}
	wall := c.src.wall()
	begin := int64(o.Start)
	if begin == 0 {
		begin = wall
	}
	mono := c.src.mono()
	c.boot0 = c.src.boot() - mono
	c.offset.Store(begin - mono)
	// A start that was computed a moment ago is as good as the wall clock's time: then civil stays
	// 0, so that stored instants read exactly as they were stored.
	if off := wall - begin; beyond(off, stepSize) {
		c.civil.Store(off)
	}
	return c
}

// Now returns the present instant.
func (c *System) Now() limit.Instant {
	if c.follows.Load() {
		return c.notBefore()
	}
	return limit.Instant(c.src.mono() + c.offset.Load())
}

// notBefore is Now for a clock that follows: it returns no instant before one that was read.
func (c *System) notBefore() limit.Instant {
	now := c.src.mono() + c.offset.Load()
	for {
		latest := c.latest.Load()
		if now <= latest {
			return limit.Instant(latest)
		}
		if c.latest.CompareAndSwap(latest, now) {
			return limit.Instant(now)
		}
	}
}

// Civil converts an instant into the time that the wall clock shows then.
func (c *System) Civil(i limit.Instant) limit.Instant {
	return i.Add(time.Duration(c.civil.Load()))
}

// Derived converts a time of the wall clock into the instant.
func (c *System) Derived(i limit.Instant) limit.Instant {
	return i.Add(time.Duration(-c.civil.Load()))
}

// AfterFunc is [time.AfterFunc].
func (c *System) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// Step returns the present difference between the wall clock and the instants, or 0 if it is at
// most a second.
func (c *System) Step() time.Duration { return time.Duration(c.step.Load()) }

// Sample detects suspensions of the machine and steps of the wall clock.
func (c *System) Sample() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sampleBoot()
	c.sampleWall()
}

// sampleBoot measures how long the machine has been suspended. It reads boot time before the
// monotonic clock: a delay between the two makes the result too small, never too large, so the
// largest result is right.
func (c *System) sampleBoot() {
	boot := c.src.boot()
	apart := boot - c.src.mono() - c.boot0
	if more := apart - c.suspended; more > 0 {
		c.suspended = apart
		c.offset.Add(more)
		c.primary.shift(more)
	}
}

// sampleWall compares the wall clock with civil time. It reports a step when it sees it. Civil time
// follows once the step has lasted for a minute.
func (c *System) sampleWall() {
	// Don't use Now: while a following clock is ahead it stands still.
	now := limit.Instant(c.src.mono() + c.offset.Load())
	apart := c.src.wall() - int64(now)
	if beyond(apart, stepSize) {
		c.step.Store(apart)
	} else {
		c.step.Store(0)
	}
	off := apart - c.civil.Load()
	switch {
	case !beyond(off, stepSize):
		c.pending = 0
	case c.pending == 0 || beyond(off-c.pending, stepSize):
		c.pending, c.since = off, now
		if c.onStep != nil {
			c.onStep(time.Duration(off))
		}
	case now.Sub(c.since) >= stepLasts:
		c.civil.Store(apart)
		c.pending = 0
	}
}

// beyond reports whether the absolute value of d is greater than most.
func beyond(d, most int64) bool { return d > most || d < -most }

// WithSources returns o with these clocks, in nanoseconds, instead of the system's.
func (o Options) WithSources(wall, mono, boot func() int64) Options {
	o.sources = &sources{wall: wall, mono: mono, boot: boot}
	return o
}

// clocks returns the clocks of o, or the system's.
func (o Options) clocks() sources {
	if o.sources != nil {
		return *o.sources
	}
	return systemSources()
}
