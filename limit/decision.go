package limit

import (
	"errors"
	"time"
)

// NoRetry in [Decision.RetryAfter] means that there is nothing to wait for: the call was admitted,
// or it can never pass.
const NoRetry time.Duration = -1

// Decision is the answer of every limiter, exact to the nanosecond. Commands reply with its five
// fields as integers, and round only these integers.
type Decision struct {
	// Refused is the number of units that were not granted: 0 if all were granted, 1 for an
	// ordinary denial, and up to the quantity for a partial grant.
	Refused int64
	// Limit is the maximum number of units that the limiter admits at once. For CL.THROTTLE it may
	// be zero or negative, since the max burst may be negative.
	Limit int64
	// Remaining is the number of units that another call would be granted at the same instant, from
	// 0 to Limit.
	Remaining int64
	// RetryAfter is the time that the caller has to wait: until a refused call would pass, until a
	// granted reservation may be used or, after a forced charge beyond the limit, until one unit
	// would pass. It is [NoRetry] if there is nothing to wait for.
	RetryAfter time.Duration
	// ResetAfter is the time until the limiter is as if it had never been used.
	ResetAfter time.Duration
}

// Allowed reports whether all requested units were granted. It is false for a partial grant.
func (d Decision) Allowed() bool { return d.Refused == 0 }

// These are the errors that limiters and stores share. Package command has the text of the reply for
// each of them.
var (
	// ErrWrongType means that the key holds another kind of value.
	ErrWrongType = errors.New("key holds another kind of value")
	// ErrNotInteger means that the key holds a string which is not an int64 in decimal.
	ErrNotInteger = errors.New("stored string is not an integer")
	// ErrOverflow means that the state after the call would exceed int64 nanoseconds or units.
	ErrOverflow = errors.New("state would overflow")
	// ErrRateTooHigh means that one unit would take less than a nanosecond.
	ErrRateTooHigh = errors.New("one unit takes less than 1 ns")
	// ErrFull means that memory is at its maximum and the call needs more, for example for a new
	// key.
	ErrFull = errors.New("memory is full")
	// ErrNotKept means that the journal cannot keep effects at present, so no call may have an
	// effect.
	ErrNotKept = errors.New("the journal cannot keep effects")
	// ErrSumOverflow means that a counter would exceed the range of int64.
	ErrSumOverflow = errors.New("sum would overflow")
	// ErrTooLong means that a string would exceed its maximum length.
	ErrTooLong = errors.New("string is too long")
	// ErrTooManyMembers means that a lease set has its maximum number of members.
	ErrTooManyMembers = errors.New("too many members")
	// ErrTooLarge means that the state would exceed its maximum size in the store.
	ErrTooLarge = errors.New("state is too large")
)
