package loadgen

import (
	"sync/atomic"
	"time"
)

// maxClaimKeys is the number of keys whose refusals are compared with their grants. Their claims
// take 16 MiB.
const maxClaimKeys = 1 << 20

// claimSlack is how far the instant at which the server decided may lie outside of the time between
// request and reply.
const claimSlack = int64(time.Millisecond)

// slew says how much faster than the generator's clock the server's clock may run: by 1/slew, 500
// ppm, the fastest rate at which NTP corrects a clock.
const slew = 2000

// A claim adds up the units that one key must have been granted to explain its refusals. A call of
// q units is refused only if limit-q+1 units or more were granted within a spell (see [Limit])
// before it. The units of spells that do not overlap add up. So a refusal counts only if the
// earliest possible beginning of its spell is after the arrival of the last refusal that counted.
//
// Before the first grant to a key its refusals claim nothing: a limit of an earlier run may be the
// cause.
type claim struct {
	// since is the instant after which no claim counts grants yet. It is 0 before the first grant
	// or refusal, and neverGranted if there were only refusals.
	since atomic.Int64
	// owed is the number of units claimed so far.
	owed atomic.Int64
}

const neverGranted = -1

// granted notes a grant that arrived at now.
func (c *claim) granted(now int64) {
	if since := c.since.Load(); since <= 0 {
		c.since.CompareAndSwap(since, max(now, 1))
	}
}

// refused notes a refusal that arrived at now, of a call that was due at the instant at. It claims
// that owed units were granted within the spell before the call.
func (c *claim) refused(at, now int64, spell time.Duration, owed int64) {
	since := c.since.Load()
	switch {
	case since == 0:
		c.since.CompareAndSwap(0, neverGranted)
	case since > 0 && owed > 0 && at-stretched(spell)-claimSlack >= since && c.since.CompareAndSwap(since, now):
		c.owed.Add(owed)
	}
}

// stretched returns the longest time that may pass here while a span passes on the server's clock.
func stretched(span time.Duration) int64 { return int64(span) + int64(span)/slew }
