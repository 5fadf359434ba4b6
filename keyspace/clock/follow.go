package clock

import "github.com/cellserver/cellserver/limit"

// Set changes the present instant to at, even to an earlier one, and makes the clock follow from
// now on. It may be called only while no goroutine reads the clock or uses an instant that it has
// read: at the end of a full resynchronization, while the world is stopped.
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

// Follow takes a clock frame: the primary's instant was at when the frame was sent. It should be
// called as soon as the frame has arrived, since waiting counts as a delay of the frame. From then
// on Now is the instant of the frame with the smallest delay of the last 10 to 20 seconds, plus the
// monotonic time since. Now never goes back: a clock that is ahead stands still until it is not. It
// may be ahead of the primary by the drift between the two clocks since the last frame.
func (c *System) Follow(at limit.Instant) {
	if at < 0 || at > far {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sampleBoot() // a suspension must not be taken for a change of the primary's clock
	mono := c.src.mono()
	if !c.follows.Load() {
		// Instants that were read until now are not in latest, so the offset must not decrease yet.
		c.primary.forget(mono)
		c.latest.Store(mono + c.offset.Load())
		c.follows.Store(true)
		c.moveTo(max(c.primary.add(int64(at)-mono, mono), c.offset.Load()))
		return
	}
	c.moveTo(c.primary.add(int64(at)-mono, mono))
}

// ForgetPrimary discards what Follow has learned about a primary when another server takes its place. The
// clock of the new primary may be behind. For up to 20 seconds this clock would be ahead of it by
// the difference, and if this server became the primary then, callers would be granted that time
// twice. Until the next frame the clock continues as it is.
func (c *System) ForgetPrimary() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sampleBoot()
	c.primary.forget(c.src.mono())
}

// moveTo changes the offset. Civil time belongs to this node, so it moves the other way. It stays
// as it is after small changes, so that instants read as they do on the primary.
func (c *System) moveTo(offset int64) {
	c.moved += offset - c.offset.Load()
	c.offset.Store(offset)
	if beyond(c.moved, stepSize/2) {
		civil := c.civil.Load() - c.moved
		if !beyond(civil, stepSize/2) {
			// This also drops the rest of small changes. It would remain after the clock has come
			// back from a large change, and make all expiries read some milliseconds later.
			civil = 0
		}
		c.civil.Store(civil)
		c.moved = 0
	}
}

// StopFollowing ends Follow: the clock continues on its own from the present instant. That may be ahead of
// the primary's clock by the difference that Follow has not taken back yet: by the delay of a
// message if this server was itself the primary a moment ago. Standing still until then could take
// as long as the process was stopped.
func (c *System) StopFollowing() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.follows.Load() {
		return
	}
	now := int64(c.notBefore())
	mono := c.src.mono()
	// The difference that has not been taken back is kept. A reader that sees follows false sees
	// this offset.
	c.moveTo(max(now-mono, c.offset.Load()))
	c.follows.Store(false)
}
