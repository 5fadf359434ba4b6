package concurrency

import (
	"errors"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// The bounds of a call's parameters.
const (
	// MaxLease is the longest lease, 2^61 ns or about 73 years.
	MaxLease time.Duration = 1 << 61
	// MaxMemberSize is the most bytes of a member's name.
	MaxMemberSize = 1024
	// DefaultMaxMembers is the most members of a set unless a call says another
	// number.
	DefaultMaxMembers = 100_000
	// LargestMaxMembers is the most that a call may say.
	LargestMaxMembers = 1 << 20
)

// Op tells the calls of the family apart.
type Op uint8

// The calls.
const (
	// Acquire asks for a lease, or refreshes the one that the member holds.
	Acquire Op = iota
	// Release gives the member's lease up.
	Release
	// Renew refreshes the member's lease if it holds one.
	Renew
)

// Call is one call of CC.ACQUIRE, CC.RELEASE or CC.RENEW: what the caller asks
// for, every time in nanoseconds. It may be reused; [Call.Validate] says whether
// it is sound.
type Call struct {
	Op Op
	// Member is who holds the lease: any bytes, at most [MaxMemberSize]. They are
	// not copied before Apply.
	Member []byte
	// Limit is the most members at once. 0 refuses everyone, also a member that holds a lease.
	// Acquire alone has one.
	Limit int64
	// Lease is how long the lease lasts from now on, from 1 ns to [MaxLease].
	// Release has none.
	Lease time.Duration
	// Peek lets Acquire only tell whether it would pass.
	Peek bool
	// MaxMembers caps the members of the set, whatever the limit; 0 means
	// [DefaultMaxMembers].
	MaxMembers int64

	// Millis, Block and Timeout do not touch the decision; they are here for the
	// command that has to act on them. Millis replies in milliseconds. Block
	// waits for a lease, for at most Timeout, where 0 is no bound.
	Millis  bool
	Block   bool
	Timeout time.Duration
}

// The ways in which a call can be unsound.
var (
	// ErrRange: a negative limit, or a lease that is not positive.
	ErrRange = errors.New("limit or lease is out of range")
	// ErrExclusive: options that contradict each other.
	ErrExclusive = errors.New("options exclude each other")
	// ErrMemberTooLong: a member above [MaxMemberSize].
	ErrMemberTooLong = errors.New("member is too long")
	// ErrLeaseTooLong: a lease above [MaxLease].
	ErrLeaseTooLong = errors.New("lease is too long")
)

// Validate returns nil for a sound call, else [ErrExclusive], [ErrRange],
// [ErrLeaseTooLong] or [ErrMemberTooLong], looked for in this order. [Decide] may
// be given sound calls only.
func (c *Call) Validate() error {
	switch {
	case c.Op > Renew,
		c.Op != Acquire && (c.Peek || c.Block),
		c.Peek && c.Block:
		return ErrExclusive
	case c.Op == Acquire && c.Limit < 0,
		c.Op != Release && c.Lease < 1:
		return ErrRange
	case c.Op != Release && c.Lease > MaxLease:
		return ErrLeaseTooLong
	case len(c.Member) > MaxMemberSize:
		return ErrMemberTooLong
	}
	return nil
}

func (c *Call) maxMembers() int64 {
	if c.MaxMembers <= 0 {
		return DefaultMaxMembers
	}
	return min(c.MaxMembers, LargestMaxMembers)
}

// until returns the instant at which a lease given at now expires.
func (c *Call) until(now limit.Instant) limit.Instant { return now.Add(c.Lease) }
