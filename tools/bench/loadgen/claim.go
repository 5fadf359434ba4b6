package loadgen

import (
	"sync/atomic"
	"time"
)

// maxClaimKeys is the maximum number of keys whose refusals are checked against what the keys were
// granted. The claims of that many keys take 16 MiB.
const maxClaimKeys = 1 << 20

// claimSlack is the tolerance, in nanoseconds, for the instant of a decision of the server: the
// instant may lie up to claimSlack before the request was sent or after the reply arrived.
const claimSlack = int64(time.Millisecond)

// slew bounds the difference between the rates of the server's clock and of the generator's clock:
// 1/slew is 500 ppm, the maximum rate at which NTP corrects a clock.
const slew = 2000

// A claim adds up the units that one key must have been granted to explain its refusals. A call of
// q units is refused only if limit-q+1 units or more were granted within a spell (see [Limit])
// before it. The units of spells that do not overlap add up. So a refusal counts only if the
// earliest possible beginning of its spell is after the arrival of the last refusal that counted.
//
// Before the first grant to a key its refusals claim nothing: a limit of an earlier run may be the
// cause.
type claim struct {
	// since is the instant up to which grants have been claimed: the arrival of the last refusal
	// that counted, or of the first grant. It is 0 before the first grant or refusal, and
	// neverGranted if there were only refusals.
	since atomic.Int64
	// owed is the number of units claimed so far.
	owed atomic.Int64
}

const neverGranted = -1

// granted notes a grant that arrived at now. Only the first grant has an effect.
func (c *claim) granted(now int64) {
	if since := c.since.Load(); since <= 0 {
		c.since.CompareAndSwap(since, max(now, 1))
	}
}

// refused notes a refusal that arrived at now, of a call that was due at the instant at. The
// refusal requires that owed units were granted within the spell before the call. They are added to
// the claim unless the spell overlaps the one of an earlier refusal that counted.
func (c *claim) refused(at, now int64, spell time.Duration, owed int64) {
	since := c.since.Load()
	switch {
	case since == 0:
		c.since.CompareAndSwap(0, neverGranted)
	case since > 0 && owed > 0 && at-stretched(spell)-claimSlack >= since && c.since.CompareAndSwap(since, now):
		c.owed.Add(owed)
	}
}

// stretched returns the longest time that may pass on one of the two clocks while span passes on
// the other.
func stretched(span time.Duration) int64 { return int64(span) + int64(span)/slew }
