package clock

import "github.com/cellserver/cellserver/limit"

// Set changes the present instant to at, even if at is earlier, and makes the clock follow another
// from now on. An instant out of the valid range is replaced by the nearest valid one. Set discards
// what Follow has learned, and makes civil time agree with this server's wall clock. Set may be
// called only while no goroutine reads the clock or uses an instant that it has read: at the end of
// a full resynchronization, while the world is stopped.
func (c *System) Set(at limit.Instant) {
	at = min(max(at, 0), far)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sampleBoot()
	mono := c.src.mono()
	c.offset.Store(int64(at) - mono)
	c.latest.Store(int64(at))
	c.follows.Store(true)
	c.primary.forget(mono)
	c.moved, c.pending = 0, 0
	c.civil.Store(0)
	if apart := c.src.wall() - int64(at); beyond(apart, stepSize) {
		c.civil.Store(apart)
	}
}

// Follow processes a clock frame of the primary: at was the primary's instant when the frame was
// sent. Follow should be called as soon as the frame has arrived, since the time in between counts
// as a delay of the frame. From then on Now returns the instant of the frame with the smallest
// delay of the last 10 to 20 seconds, plus the monotonic time since that frame. Now never goes
// back: if the clock is ahead, it stands still until it no longer is. The clock may be ahead of the
// primary's by the drift between the two clocks since the last frame. Follow ignores an instant
// that is negative, or later than any that a clock can show.
func (c *System) Follow(at limit.Instant) {
	if at < 0 || at > far {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sampleBoot() // otherwise a suspension would look like a change of the primary's clock
	mono := c.src.mono()
	if !c.follows.Load() {
		// latest does not cover instants that were read before, so offset must not decrease here.
		c.primary.forget(mono)
		c.latest.Store(mono + c.offset.Load())
		c.follows.Store(true)
		c.moveTo(max(c.primary.add(int64(at)-mono, mono), c.offset.Load()))
		return
	}
	c.moveTo(c.primary.add(int64(at)-mono, mono))
}

// ForgetPrimary discards what Follow has learned about a primary, when another server takes the
// primary's place. The clock of the new primary may be behind the clock of the old one. Without
// ForgetPrimary, this clock would be ahead of the new primary by the difference for up to 20
// seconds. If this server then became the primary, clients would be granted that time twice. Until
// the next frame the clock runs on as it is.
func (c *System) ForgetPrimary() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sampleBoot()
	c.primary.forget(c.src.mono())
}

// moveTo sets c.offset to offset. The civil time of this server must stay the same, so moveTo
// changes civil in the opposite direction. As long as the changes add up to at most half a second,
// civil stays as it is, so that instants read as they do on the primary.
func (c *System) moveTo(offset int64) {
	c.moved += offset - c.offset.Load()
	c.offset.Store(offset)
	if beyond(c.moved, stepSize/2) {
		civil := c.civil.Load() - c.moved
		if !beyond(civil, stepSize/2) {
			// Setting civil to 0 also drops the rest of small changes. The rest would remain after
			// the clock has come back from a large change, and make all expiries read some
			// milliseconds later.
			civil = 0
		}
		c.civil.Store(civil)
		c.moved = 0
	}
}

// StopFollowing makes the clock continue on its own from the present instant. If the clock was
// standing still because it was ahead of the primary's clock, it stays ahead by the difference. For
// a server that was itself the primary a moment ago, this difference is the delay of one message.
// StopFollowing does not wait until the difference is gone, because that could take as long as the
// process was stopped.
func (c *System) StopFollowing() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.follows.Load() {
		return
	}
	now := int64(c.notBefore())
	mono := c.src.mono()
	// The difference by which the clock is ahead becomes part of offset. offset is stored before
	// follows, so that a reader that sees follows false sees the new offset.
	c.moveTo(max(now-mono, c.offset.Load()))
	c.follows.Store(false)
}
