package concurrency

import (
	"errors"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// These are the bounds of the parameters of a call.
const (
	// MaxLease is the longest lease, 2^61 ns or about 73 years.
	MaxLease time.Duration = 1 << 61
	// MaxMemberSize is the maximum length in bytes of a member's name.
	MaxMemberSize = 1024
	// DefaultMaxMembers is the maximum number of members of a set if a call sets no other maximum.
	DefaultMaxMembers = 100_000
	// LargestMaxMembers is the largest maximum of a set. A call that sets a larger one gets this one.
	LargestMaxMembers = 1 << 20
	// MaxPlaces is the maximum number of places that a member can have.
	MaxPlaces = 1<<31 - 1
)

// Op is the operation of a call.
type Op uint8

// These are the values of [Op].
const (
	// Acquire requests a lease, or refreshes the lease that the member holds.
	Acquire Op = iota
	// Release ends the lease of the member.
	Release
	// Renew refreshes the lease of the member if it holds one.
	Renew
)

// Call has the parameters of one CC.ACQUIRE, CC.RELEASE or CC.RENEW, with all times in nanoseconds.
// [Call.Validate] checks them. A Call may be reused.
type Call struct {
	Op Op
	// Member is the name of the holder of the lease, any bytes up to the length [MaxMemberSize].
	// [Plan.Apply] copies the bytes.
	Member []byte
	// Limit is the maximum number of places that are in use at the same time. A limit of 0 refuses
	// every Acquire, even if the member holds a lease. Release and Renew have no limit.
	Limit int64
	// Places is the number of places that the member has after an Acquire, from 1 to [MaxPlaces]. 0
	// keeps the places of a member that has some, and otherwise means 1. A Renew keeps the places of
	// the member, and a Release ends all of them, whatever Places is.
	Places int64
	// Lease is the duration of the lease from now on, from 1 ns to [MaxLease]. Release has no
	// duration.
	Lease time.Duration
	// Peek makes Acquire only report whether it would pass.
	Peek bool
	// Force makes Acquire pass beyond a Limit that is not 0, but not beyond MaxMembers.
	Force bool
	// MaxMembers is the maximum number of members of the set, whatever Limit is; 0 or less means
	// [DefaultMaxMembers].
	MaxMembers int64

	// Millis, Block and Timeout do not affect the decision; the command uses them. Millis says that
	// times are replied in milliseconds. Block says that the command waits for a lease, for at most
	// Timeout, where 0 means no bound.
	Millis  bool
	Block   bool
	Timeout time.Duration
}

// These are the errors of [Call.Validate].
var (
	// ErrRange means that a limit or a number of places is negative, that a number of places is
	// larger than [MaxPlaces], or that a lease is not positive.
	ErrRange = errors.New("limit, places or lease is out of range")
	// ErrExclusive means that options contradict each other.
	ErrExclusive = errors.New("options exclude each other")
	// ErrMemberTooLong means that a member is longer than [MaxMemberSize].
	ErrMemberTooLong = errors.New("member is too long")
	// ErrLeaseTooLong means that a lease is longer than [MaxLease].
	ErrLeaseTooLong = errors.New("lease is too long")
)

// Validate returns nil for a valid call, otherwise the first of [ErrExclusive], [ErrRange],
// [ErrLeaseTooLong] and [ErrMemberTooLong] that applies. [Decide] must be called only with valid
// calls.
func (c *Call) Validate() error {
	switch {
	case c.Op > Renew,
		c.Op != Acquire && (c.Peek || c.Block || c.Force),
		c.Peek && c.Block,
		c.Force && (c.Peek || c.Block):
		return ErrExclusive
	case c.Op == Acquire && (c.Limit < 0 || c.Places < 0 || c.Places > MaxPlaces),
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

// places returns the number of places that an Acquire asks for, by a member that has own places.
func (c *Call) places(own int64) int64 {
	if c.Places == 0 {
		return max(1, own)
	}
	return c.Places
}

func (c *Call) until(now limit.Instant) limit.Instant { return now.Add(c.Lease) }
