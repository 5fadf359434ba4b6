package limit

import (
	"errors"
	"time"
)

// NoRetry in [Decision.RetryAfter] says that there is nothing to wait for: the
// call was admitted, or it can never pass.
const NoRetry time.Duration = -1

// Decision is the answer of every limiter, exact to the nanosecond. A command replies it as five
// integers; only the reply is rounded.
type Decision struct {
	// Refused is the number of units that were not granted: 0 if all were granted, 1 for an
	// ordinary denial, up to the quantity for a partial grant.
	Refused int64
	// Limit is the maximum that the limiter admits at once. It may be zero or negative for
	// CL.THROTTLE, whose max burst may be negative.
	Limit int64
	// Remaining is the number of units that another call would be granted now, from 0 to Limit.
	Remaining int64
	// RetryAfter is how long the caller has to wait: until a refused call would
	// pass, or until a granted reservation may be used. [NoRetry] if neither.
	RetryAfter time.Duration
	// ResetAfter is how long until the limiter is as if it had never been used.
	ResetAfter time.Duration
}

// Allowed reports whether all requested units were granted.
func (d Decision) Allowed() bool { return d.Refused == 0 }

// The errors of valid calls on stored state. The command layer replies the text that Redis users
// know for each.
var (
	// ErrWrongType: the key holds another kind of value.
	ErrWrongType = errors.New("key holds another kind of value")
	// ErrNotInteger: a string key does not hold a decimal int64.
	ErrNotInteger = errors.New("stored string is not an integer")
	// ErrOverflow: the state after the call would exceed int64 nanoseconds or units.
	ErrOverflow = errors.New("state would overflow")
	// ErrRateTooHigh: one unit would take less than a nanosecond.
	ErrRateTooHigh = errors.New("one unit takes less than 1 ns")
	// ErrFull: memory is at its maximum and the call needs a new key.
	ErrFull = errors.New("memory is full")
	// ErrNotKept: the journal cannot keep effects, so nothing may have one.
	ErrNotKept = errors.New("the journal cannot keep effects")
	// ErrSumOverflow: a counter would exceed the range of int64.
	ErrSumOverflow = errors.New("sum would overflow")
	// ErrTooLong: a string would exceed its maximum length.
	ErrTooLong = errors.New("string is too long")
	// ErrTooManyMembers: a lease set has its maximum number of members.
	ErrTooManyMembers = errors.New("too many members")
	// ErrTooLarge: the state would exceed its maximum size in the store.
	ErrTooLarge = errors.New("state is too large")
)
