package concurrency

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Action is what a plan does to its key.
type Action uint8

// The actions.
const (
	// Keep stores nothing.
	Keep Action = iota
	// Store stores the result of Apply, with the plan's mode and expiry.
	Store
	// Delete removes the key, since no member holds a lease any more.
	Delete
)

// Effect is the change of one member by a plan, independent of the rest of the set. A delta records
// it.
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

// Plan is the result of [Decide] for one call. It is scratch that belongs to the caller and may be
// reused. It refers to the call's member but not to the value.
type Plan struct {
	// Decision is the answer of an Acquire. For Release and Renew only Refused, which is 1 if the
	// member holds no lease, and ResetAfter are defined.
	Decision limit.Decision
	Action   Action
	// Mode and Expiry are to be stored with the value if Action is Store.
	Mode   Mode
	Expiry limit.Instant

	// Effect is the change of Member. Leases that have expired at Now may be dropped as well, which
	// no call can observe.
	Effect Effect
	Member []byte
	Until  limit.Instant
	Now    limit.Instant
}

// after returns the time from now to at, 0 if at has passed.
func after(at, now limit.Instant) time.Duration { return max(0, at.Sub(now)) }
