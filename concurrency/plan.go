package concurrency

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Action is what a plan does to its key.
type Action uint8

// The actions.
const (
	// Keep writes nothing.
	Keep Action = iota
	// Store writes what Apply returns, with the plan's mode and expiry.
	Store
	// Delete makes the key go away: nobody holds a lease any more.
	Delete
)

// Effect is what a plan does to one member of the set, whatever the set looks
// like: the least that somebody else has to know in order to follow.
type Effect uint8

// The effects.
const (
	// Nothing happens.
	Nothing Effect = iota
	// Holds: the member holds a lease until Until.
	Holds
	// Gone: the member holds no lease.
	Gone
)

// Plan is what [Decide] found out about one call. It is scratch that belongs to
// the caller and may be reused; it refers to the call's member and not to the
// value.
type Plan struct {
	// Decision is the answer of an Acquire. For Release and Renew only Refused,
	// which is 1 when the member holds no lease, and ResetAfter mean something.
	Decision limit.Decision
	Action   Action
	// Mode and Expiry are those to store the value with, where Action is Store.
	Mode   Mode
	Expiry limit.Instant

	// Effect is what happens to Member. Leases that have expired at Now may be
	// dropped by the way, which nobody can tell from their being there.
	Effect Effect
	Member []byte
	Until  limit.Instant
	Now    limit.Instant
}

// after returns how long it is from now to at, 0 if at has passed.
func after(at, now limit.Instant) time.Duration { return max(0, at.Sub(now)) }
