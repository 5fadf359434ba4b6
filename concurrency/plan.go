package concurrency

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Action is the kind of change that a plan makes to its key.
type Action uint8

// These are the values of [Action].
const (
	// Keep changes nothing.
	Keep Action = iota
	// Store stores the result of Apply, with the mode and the expiry of the plan.
	Store
	// Delete removes the key, since no member holds a lease any more.
	Delete
)

// Effect is the change of one member by a plan, independent of the rest of the set. A delta records
// it.
type Effect uint8

// These are the values of [Effect].
const (
	// Nothing means that no member changes.
	Nothing Effect = iota
	// Holds gives the member a lease until Plan.Until, with as many places as Plan.Places says.
	Holds
	// Gone ends the lease of the member.
	Gone
)

// Plan is the result of [Decide] for one call. It belongs to the caller and may be reused. It
// refers to the member of the call, but not to the value.
type Plan struct {
	// Decision is the answer of an Acquire. For Release and Renew only two fields are defined:
	// Refused, which is 1 if the member holds no lease, and ResetAfter.
	Decision limit.Decision
	Action   Action
	// Mode and Expiry have to be stored with the value if Action is Store.
	Mode   Mode
	Expiry limit.Instant

	// Effect is the change of Member. If Member holds a lease then, it has that many Places until
	// the instant Until. Apply may also drop leases that have expired at Now, which no call can
	// observe.
	Effect Effect
	Member []byte
	Until  limit.Instant
	Places int64
	Now    limit.Instant
}

func after(at, now limit.Instant) time.Duration { return max(0, at.Sub(now)) }
