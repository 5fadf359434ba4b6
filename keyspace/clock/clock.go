package clock

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Clock is where instants come from. Those of [Clock.Now] never step back; they
// are wall time at the start plus the time the machine has been up since, suspended
// or not, so that no step of the wall clock moves a decision. What people mean by a
// time of day is the civil instant, a constant away unless the wall clock was
// stepped.
type Clock interface {
	Now() limit.Instant
	// Civil turns an instant into the civil one, Derived is its inverse.
	Civil(limit.Instant) limit.Instant
	Derived(limit.Instant) limit.Instant
	// AfterFunc calls f in a goroutine of its own once d has passed.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a call that is to come.
type Timer interface {
	// Stop prevents the call, if it has not begun, and reports whether it did.
	Stop() bool
}

// Options are what a [System] is made of. The zero value is fine.
type Options struct {
	// Start is the first instant, for a server that goes on from an earlier life; 0
	// is the wall clock's.
	Start limit.Instant
	// OnStep is called, from Sample, once for every step of the wall clock that is
	// noticed, with its size. A step of a second or less is none.
	OnStep func(step time.Duration)

	sources *sources // a test's own
}

// System is the clock of a real server. Somebody has to call Sample at least
// every 100 ms; [Keyspace.Run] does. It goes by itself, or follows that of another
// server: see [System.Follow].
type System struct {
	src    sources
	onStep func(time.Duration)
	// offset is the instant at which mono was 0: that of the start, later by how long the
	// machine was suspended since, and moved by Set and Follow. It is stored under mu.
	offset atomic.Int64
	// follows says that Now has to look at latest, the latest instant that was ever read:
	// offset may have been taken back.
	follows atomic.Bool
	latest  atomic.Int64
	// boot0 is boot minus mono at the start.
	boot0 int64
	// civil is what is added to an instant to make it civil.
	civil atomic.Int64
	// step is how far the wall clock is from the instants now, when that is more
	// than a second; the gauge clock_step_seconds.
	step atomic.Int64

	mu sync.Mutex // guards what follows
	// suspended is how much further apart boot and mono are now than at the start: how
	// long the machine was suspended since.
	suspended int64
	primary   primary
	// moved is what Follow has moved offset by since civil was last adapted.
	moved int64
	// pending is a difference from civil that began at since and goes on.
	pending int64
	since   limit.Instant
}

const (
	// stepSize is how far the wall clock may be off without being called stepped.
	stepSize = int64(time.Second)
	// stepLasts is how long a step has to last before civil time follows it.
	stepLasts = 60 * time.Second
)

// NewSystem starts a clock.
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
	// A start that was worked out a moment ago is as good as the wall's: instants are to
	// read as what they were stored as.
	if off := wall - begin; beyond(off, stepSize) {
		c.civil.Store(off)
	}
	return c
}

// Now returns the instant.
func (c *System) Now() limit.Instant {
	if c.follows.Load() {
		return c.notBefore()
	}
	return limit.Instant(c.src.mono() + c.offset.Load())
}

// notBefore is Now for a clock that follows: an instant that is not before any that was read.
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

// Civil turns an instant into what the wall clock shows then.
func (c *System) Civil(i limit.Instant) limit.Instant {
	return i.Add(time.Duration(c.civil.Load()))
}

// Derived turns what the wall clock shows into the instant.
func (c *System) Derived(i limit.Instant) limit.Instant {
	return i.Add(time.Duration(-c.civil.Load()))
}

// AfterFunc is [time.AfterFunc].
func (c *System) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// Step is how far the wall clock is from the instants, if that is more than a
// second, else 0.
func (c *System) Step() time.Duration { return time.Duration(c.step.Load()) }

// Sample notices that the machine was suspended and that the wall clock was
// stepped.
func (c *System) Sample() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sampleBoot()
	c.sampleWall()
}

// sampleBoot reads how long the machine has been suspended. Boot time is read
// before the monotonic clock, so that whatever comes in between makes the result
// too small, never too large, and keeping the largest never runs ahead.
func (c *System) sampleBoot() {
	boot := c.src.boot()
	apart := boot - c.src.mono() - c.boot0
	if more := apart - c.suspended; more > 0 {
		c.suspended = apart
		c.offset.Add(more)
		c.primary.shift(more)
	}
}

// sampleWall compares the wall clock with civil time. A step is reported when it
// is seen, and followed by civil time once it has lasted a minute.
func (c *System) sampleWall() {
	// Not Now, which stands still while what was taken back is made up for.
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

// beyond reports whether d is further from 0 than most.
func beyond(d, most int64) bool { return d > most || d < -most }

// WithSources returns o with these in place of the system's clocks, in nanoseconds.
func (o Options) WithSources(wall, mono, boot func() int64) Options {
	o.sources = &sources{wall: wall, mono: mono, boot: boot}
	return o
}

// clocks are the clocks that o names, or the system's.
func (o Options) clocks() sources {
	if o.sources != nil {
		return *o.sources
	}
	return systemSources()
}
