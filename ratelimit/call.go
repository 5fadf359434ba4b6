// Package ratelimit decides the calls of clients under policies, for every protocol that the server
// speaks.
//
// A front, the implementation of one protocol, reads a [Call] from its client. [Decider.Find] looks
// up the limits and other entries that apply to the key of the call. [Decider.Decide] then has a
// store decide the call, counts the decision, and returns an [Answer], which the front encodes. A
// front that lets a client wait for room calls the methods for the steps of Decide itself. A call
// under several policies has a [Part] for each, and [Decider.All] or [Decider.Any] decides it.
package ratelimit

import (
	"errors"
	"slices"
	"time"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit/hotkeys"
	"github.com/cellserver/cellserver/reservation"
)

// Mode says how a call takes its quantity.
type Mode uint8

// These are the modes.
const (
	Whole   Mode = iota // the call takes the whole quantity, or is denied
	Peek                // the call charges nothing
	Partial             // the call takes as much of the quantity as is available
	Force               // the call takes the quantity, even beyond the limit
	Wait                // the call reserves the quantity, and the answer says how long the caller has to wait
	Block               // the call waits until there is room for the quantity
)

// These are the errors of calls that cannot be decided, in addition to the errors of the store.
var (
	// ErrNoPolicy says that there is no policy with the name of the call: see also [Service.NoPolicy].
	ErrNoPolicy = errors.New("no such policy")
	// ErrNoMember says that the policy has a concurrency limit, which needs a member.
	ErrNoMember = errors.New("the policy limits concurrency, which needs a member")
	// ErrQuantities says that the limits for the key have another number of clauses than the call
	// has quantities.
	ErrQuantities = errors.New("the number of quantities is not that of the clauses")
	// ErrPlaces says that the call takes more than [concurrency.MaxPlaces] places of a concurrency
	// limit.
	ErrPlaces = errors.New("too many places")
	// ErrPartial says that a policy with a bucket that lends tokens does not support the mode Partial.
	ErrPartial = errors.New("a policy that lends tokens cannot charge a part of a quantity")
	// ErrCount says that a policy that counts denied calls does not support the modes Partial, Wait and Block,
	// nor reservations.
	ErrCount = errors.New("a policy that counts denied calls takes a quantity whole and at once")
	// ErrNoClass says that the policy has no class with the name of the call.
	ErrNoClass = errors.New("no such class")
	// ErrKeepDebt says that a call cannot keep a part of a bucket that lends tokens.
	ErrKeepDebt = errors.New("a policy that lends tokens keeps none")
	// ErrKeepUnits says that the call keeps a number of units, and the limits have several clauses.
	ErrKeepUnits = errors.New("a number of units is kept of one limit")
)

// Call is one call of a client under a policy, or under its own limits.
type Call struct {
	// DB is the index of the database that has the state.
	DB int
	// Policy is the name of the policy, and Key is the key that the client has given: any bytes.
	// Both have to remain valid until the end of the batch, unless the call is volatile.
	Policy, Key []byte
	// Quantity is the number of units to charge. 0 charges nothing, and a negative quantity returns
	// units. A clause with CALLS counts one unit if the quantity is positive, and otherwise none. A
	// concurrency limit grants one place, or renews the lease if the member already holds places.
	Quantity int64
	// Quantities has a quantity for each clause of the limits that apply to the key, in their
	// order, or is nil if all clauses have Quantity. For a concurrency limit the quantity is a
	// number of places; if it is not positive, the call does not change the clause.
	// [Call.SetQuantities] sets both fields. The mode Partial does not support several quantities.
	Quantities []int64
	Mode       Mode
	// Volatile says that the memory of Policy, Key and Member may be reused before the batch ends,
	// as for the arguments of a script.
	Volatile bool
	// MaxWait is the maximum time to wait in the modes Wait and Block. 0 means no maximum for
	// Block, and no wait for Wait.
	MaxWait time.Duration
	// Member is the name of the holder of a place in a concurrency limit; nil if the call gives
	// none.
	Member []byte
	// ID identifies the call, so that it is charged only once although the client may send it
	// again; see [decide.Ask]. Its fingerprint need not be set. The mode Block does not support it.
	ID idempotency.Call
	// Reserve makes the call, which must have an ID, a reservation; see [decide.Ask]. All quantities must be
	// positive, and the modes Peek and Block do not support it, nor does [Decider.Any]. A
	// place of a concurrency limit is then taken until the reservation ends, and [Decider.Find] sets Member
	// to the token of ID if it is nil.
	Reserve reservation.Terms
	// Keep is the part of each limit that has to remain for others after the call. Units are for limits with one
	// clause, and only for a call under one policy. The modes Force and Wait do not support it.
	Keep clause.Keep
	// Class is the name of the class of the call, or nil. [Decider.Find] sets Keep to the share that the policy gives
	// for this class.
	Class []byte
	// Own are limits that the call itself has, or nil. They replace the limits of the policy and of its candidate, but
	// not the limits of an override for the key. The policy need not exist. Denied calls are charged, as under a policy
	// with the flag Count, and the call has the errors of such a policy.
	Own *policy.Limits
	// StateKey is the key of the state of the policy's first clause, if the front has computed it from Policy
	// and Key; otherwise nil. It is not used if the keys of the policy are addresses.
	StateKey []byte
	// Now is the instant of the call, by the clock of the store that decides it.
	Now limit.Instant
	// From describes the call for the statistics of keys. It must not be nil.
	From hotkeys.Caller
}

// SetQuantities makes the call charge n[i] units in clause i. It sets Quantity to the largest of n if
// that is positive, and otherwise to the least of n. So Quantity says whether the call charges units,
// returns units or does neither. n must not be empty, and the call refers to it.
func (c *Call) SetQuantities(n []int64) {
	c.Quantities, c.Quantity = n, slices.Max(n)
	if c.Quantity <= 0 {
		c.Quantity = slices.Min(n)
	}
}

// Least returns the least quantity of the call.
func (c *Call) Least() int64 {
	if c.Quantities == nil {
		return c.Quantity
	}
	return slices.Min(c.Quantities)
}

// Looks reports whether the call charges and returns nothing: its mode is Peek or its quantity is
// 0.
func (c *Call) Looks() bool { return c.Mode == Peek || c.Quantity == 0 }

// counted reports whether the counters of the policy count the call. They count only calls that
// charge units.
func (c *Call) counted() bool { return !c.Looks() && c.Quantity >= 0 }
