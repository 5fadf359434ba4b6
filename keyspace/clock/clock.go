package clock

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Clock is the source of instants. The instants that [Clock.Now] returns never go back, except by [System.Set] and
// [Manual.Set]. Unless the clock follows the clock of another server, an instant is the first instant of the server
// plus the time for which the machine has been up since, including the time for which it was suspended. So a step of
// the wall clock does not change a decision. A civil instant is the time of day that users mean; it differs from the
// instant by a constant, unless a clock was stepped.
type Clock interface {
	// Now returns the present instant.
	Now() limit.Instant
	// Civil converts an instant into the civil instant.
	Civil(limit.Instant) limit.Instant
	// Derived is the inverse of Civil: it converts a civil instant into the instant.
	Derived(limit.Instant) limit.Instant
	// AfterFunc calls f in a goroutine of its own, or in the one that moves a [Manual], once d has passed, unless
	// the returned timer is stopped before.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a pending call of a function that was passed to AfterFunc of a [Clock].
type Timer interface {
	// Stop prevents the call if it has not begun, and reports whether it has prevented the call.
	Stop() bool
}

// Options configure a [System]. The zero value makes a clock that begins at the wall clock's time.
type Options struct {
	// Start is the first instant of a server that continues from an earlier run: see
	// [Resumption.Start]. 0 means the wall clock's time.
	Start limit.Instant
	// OnStep, if not nil, is called by [System.Sample] once for every step of the wall clock that
	// Sample notices. step is the wall clock's time minus civil time; it is negative if the wall
	// clock was set back. A step of a second or less does not count. OnStep must not call Sample,
	// Set, Follow, ForgetPrimary or StopFollowing, since the clock is locked.
	OnStep func(step time.Duration)

	sources *sources // the readings of the system's clocks that a test supplies; nil outside of tests
}

// System is the clock of a real server. It runs on its own or follows the clock of another server:
// see [System.Follow]. [System.Sample] must be called at least every 100 ms, as
// keyspace.Keyspace.Run does. Any goroutine may call the methods.
type System struct {
	src    sources
	onStep func(time.Duration)
	// offset is the instant at which the monotonic clock was 0. It begins as the instant of the
	// start, is advanced by the time for which the machine was suspended since, and is changed by
	// Set and Follow. It is stored only with mu locked.
	offset atomic.Int64
	// follows is true while the clock follows another. Then Now returns no instant before latest,
	// the latest instant that was read, since offset may have been decreased.
	follows atomic.Bool
	latest  atomic.Int64
	// boot0 is the boot-time clock minus the monotonic clock at the start, in nanoseconds.
	boot0 int64
	// civil is the difference in nanoseconds between a civil instant and the same instant of the
	// clock.
	civil atomic.Int64
	// step is the present difference in nanoseconds between the wall clock and the clock's instant;
	// 0 if it is at most a second. The gauge clock_step_seconds shows it.
	step atomic.Int64

	mu sync.Mutex // mu guards the fields below
	// suspended is the time for which the machine was suspended since the start: the growth of the
	// difference between the boot-time clock and the monotonic clock.
	suspended int64
	primary   primary
	// moved is the sum in nanoseconds of the changes that moveTo has made to offset since civil was
	// last adapted.
	moved int64
	// pending is the wall clock's time minus civil time, in nanoseconds, if that difference began
	// at the instant since and still lasts; 0 if there is none.
	pending int64
	since   limit.Instant
}

const (
	// stepSize is the difference in nanoseconds beyond which the wall clock counts as stepped.
	stepSize = int64(time.Second)
	// stepLasts is the time in nanoseconds for which a step must last before civil time follows it.
	stepLasts = 60 * time.Second
)

// NewSystem returns a running clock that does not follow another.
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
	// If the start is close to the wall clock's time, civil stays 0, so that stored instants read
	// exactly as they were stored.
	if off := wall - begin; beyond(off, stepSize) {
		c.civil.Store(off)
	}
	return c
}

// Now returns the present instant. It takes no lock.
func (c *System) Now() limit.Instant {
	if c.follows.Load() {
		return c.notBefore()
	}
	return limit.Instant(c.src.mono() + c.offset.Load())
}

// notBefore returns the present instant of a clock that follows another, but never an instant
// earlier than one that it has returned before. It advances latest.
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

// Civil converts the instant i into the civil instant, the time that the wall clock shows at i.
func (c *System) Civil(i limit.Instant) limit.Instant {
	return i.Add(time.Duration(c.civil.Load()))
}

// Derived converts the civil instant i, a time of the wall clock, into the instant.
func (c *System) Derived(i limit.Instant) limit.Instant {
	return i.Add(time.Duration(-c.civil.Load()))
}

// AfterFunc implements [Clock] by [time.AfterFunc].
func (c *System) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// Step returns the difference between the wall clock and the instants that the last Sample found,
// or 0 if that was at most a second.
func (c *System) Step() time.Duration { return time.Duration(c.step.Load()) }

// Sample detects suspensions of the machine and steps of the wall clock. It advances the clock by
// the time for which the machine was suspended, and calls Options.OnStep for each new step. Once a
// step has lasted for 60 seconds, civil time follows it.
func (c *System) Sample() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sampleBoot()
	c.sampleWall()
}

// sampleBoot measures the time for which the machine has been suspended, and advances the clock by
// the time that the last sample did not include. It reads the boot-time clock before the monotonic
// clock: a delay between the two readings makes the result too small, never too large. So the
// largest result is the right one.
func (c *System) sampleBoot() {
	boot := c.src.boot()
	apart := boot - c.src.mono() - c.boot0
	if more := apart - c.suspended; more > 0 {
		c.suspended = apart
		c.offset.Add(more)
		c.primary.shift(more)
	}
}

// sampleWall compares the wall clock with civil time. It calls OnStep as soon as it sees a step.
// Civil time follows once the step has lasted for a minute.
func (c *System) sampleWall() {
	// Now must not be used here: if the clock is ahead of its primary's, Now stands still.
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

// WithSources returns a copy of o with the given sources instead of the system's clocks: the wall
// clock, the monotonic clock and the boot-time clock. Each returns nanoseconds. Tests and
// simulations use it.
func (o Options) WithSources(wall, mono, boot func() int64) Options {
	o.sources = &sources{wall: wall, mono: mono, boot: boot}
	return o
}

// clocks returns the sources that WithSources has set, or the system's clocks.
func (o Options) clocks() sources {
	if o.sources != nil {
		return *o.sources
	}
	return systemSources()
}
