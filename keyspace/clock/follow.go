package clock

import "github.com/cellserver/cellserver/limit"

// Set makes at the instant, even an earlier one than there was, and has the clock follow from
// now on. It may be called only while nobody reads the clock, or believes what he has read:
// at the end of a full synchronization, when everybody is kept out.
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

// Follow takes a clock frame: the primary's instant was at when it was sent. The frame should
// have come just now, for what it waited here counts as its delay. From then on Now is that
// instant and the monotonic time since, by the frame of the last 10 to 20 seconds that took
// least. It never goes back: a clock that is ahead stands still until it is not. It may be
// ahead of the primary by what the two have drifted apart since the last frame.
func (c *System) Follow(at limit.Instant) {
	if at < 0 || at > far {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sampleBoot() // what mono has not counted must not look like the primary's doing
	mono := c.src.mono()
	if !c.follows.Load() {
		// Nobody has put down what was read until now, so nothing is taken back yet.
		c.primary.forget(mono)
		c.latest.Store(mono + c.offset.Load())
		c.follows.Store(true)
		c.moveTo(max(c.primary.add(int64(at)-mono, mono), c.offset.Load()))
		return
	}
	c.moveTo(c.primary.add(int64(at)-mono, mono))
}

// Unlearn forgets what Follow has found of a primary when another takes its place. The clock of the
// new one may be behind, and for up to 20 seconds this one would be ahead of it by the difference: if
// this server led then, callers would be granted that time twice. Until the next frame the clock goes
// on as it is.
func (c *System) Unlearn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sampleBoot()
	c.primary.forget(c.src.mono())
}

// moveTo changes the offset. Civil time is the node's own, so it moves the other way, unless
// it is by so little that instants are to read as they do on the primary.
func (c *System) moveTo(offset int64) {
	c.moved += offset - c.offset.Load()
	c.offset.Store(offset)
	if beyond(c.moved, stepSize/2) {
		civil := c.civil.Load() - c.moved
		if !beyond(civil, stepSize/2) {
			// The little moves before are in there: what is left when the clock has come back
			// from a large move would make all expiries read some milliseconds later.
			civil = 0
		}
		c.civil.Store(civil)
		c.moved = 0
	}
}

// Lead ends Follow: the clock goes on from the present instant by its own. That may be ahead of the
// primary's by what was still to be taken back: by as long as a message took if this server led
// itself a moment ago. To stand still until then could take as long as the process was stopped.
func (c *System) Lead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.follows.Load() {
		return
	}
	now := int64(c.notBefore())
	mono := c.src.mono()
	// What is still to be taken back is left as it is. A reader that sees false sees this.
	c.moveTo(max(now-mono, c.offset.Load()))
	c.follows.Store(false)
}
