package limit

import (
	"errors"
	"time"
)

// NoRetry in [Decision.RetryAfter] says that there is nothing to wait for: the
// call was admitted, or it can never pass.
const NoRetry time.Duration = -1

// Decision is the answer of every limiter, exact to the nanosecond. A command
// replies it as five integers and rounds only then.
type Decision struct {
	// Refused is the number of units that were not granted: 0 when all of them
	// were, 1 for an ordinary denial, up to the quantity for a partial grant.
	Refused int64
	// Limit is the most the limiter ever admits at once. It may be zero or
	// negative for CL.THROTTLE, whose max burst may be.
	Limit int64
	// Remaining is how many units a further call would be granted now, from 0
	// to Limit.
	Remaining int64
	// RetryAfter is how long the caller has to wait: until a refused call would
	// pass, or until a granted reservation may be used. [NoRetry] if neither.
	RetryAfter time.Duration
	// ResetAfter is how long until the limiter is as if it had never been used.
	ResetAfter time.Duration
}

// Allowed reports whether every unit asked for was granted.
func (d Decision) Allowed() bool { return d.Refused == 0 }

// The ways in which a well-formed call can fail against what is stored. The
// command layer turns each into the text that Redis users know.
var (
	// ErrWrongType: the key holds another kind of value.
	ErrWrongType = errors.New("key holds another kind of value")
	// ErrNotInteger: a string key does not hold a decimal int64.
	ErrNotInteger = errors.New("stored string is not an integer")
	// ErrOverflow: the call would move the state past what int64 nanoseconds or
	// units can hold.
	ErrOverflow = errors.New("state would overflow")
	// ErrRateTooHigh: one unit would take less than a nanosecond.
	ErrRateTooHigh = errors.New("one unit takes less than 1 ns")
	// ErrFull: memory is at its maximum and the call needs a new key.
	ErrFull = errors.New("memory is full")
	// ErrNotKept: the journal cannot keep effects, so nothing may have one.
	ErrNotKept = errors.New("the journal cannot keep effects")
	// ErrSumOverflow: a counter would leave the range of int64.
	ErrSumOverflow = errors.New("sum would overflow")
	// ErrTooLong: a string would be longer than it may be.
	ErrTooLong = errors.New("string is too long")
	// ErrTooManyMembers: a lease set has reached its cap.
	ErrTooManyMembers = errors.New("too many members")
	// ErrTooLarge: the state would be larger than one may be in the store.
	ErrTooLarge = errors.New("state is too large")
)
