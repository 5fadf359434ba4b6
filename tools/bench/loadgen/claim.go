package loadgen

import (
	"sync/atomic"
	"time"
)

// maxClaimKeys bounds of how many keys the refusals are held against what was
// granted: 16 MiB.
const maxClaimKeys = 1 << 20

// claimSlack is how far a server's idea of a reply's instant may lie outside of the
// time between its request and its arrival.
const claimSlack = int64(time.Millisecond)

// slew is how much faster than ours a server's clock may run: the most by which
// NTP corrects a clock, 500 ppm.
const slew = 2000

// A claim adds up what one key must have been granted to explain its refusals. A
// call of q units is refused only if the limit's worth less q-1 was granted within a
// spell before it. Spells that do not overlap add up: a refusal counts if its spell,
// as early as it may have begun, begins behind the arrival of the last one that did.
//
// Nothing is claimed of a key before its first grant. Until then another limit, of an
// earlier run, may be what refuses.
type claim struct {
	// since is the instant from which on grants belong to no claim yet, 0 before the
	// first grant, and neverGranted if there were refusals by then.
	since atomic.Int64
	// owed are the units claimed so far.
	owed atomic.Int64
}

const neverGranted = -1

// granted notes a grant that arrived at now.
func (c *claim) granted(now int64) {
	if since := c.since.Load(); since <= 0 {
		c.since.CompareAndSwap(since, max(now, 1))
	}
}

// refused notes that a call that was due at the instant at, and refused by now, owes
// units within the spell before it.
func (c *claim) refused(at, now int64, spell time.Duration, owed int64) {
	since := c.since.Load()
	switch {
	case since == 0:
		c.since.CompareAndSwap(0, neverGranted)
	case since > 0 && owed > 0 && at-stretched(spell)-claimSlack >= since && c.since.CompareAndSwap(since, now):
		c.owed.Add(owed)
	}
}

// stretched returns how long a server whose clock is slow may take for a span.
func stretched(span time.Duration) int64 { return int64(span) + int64(span)/slew }
