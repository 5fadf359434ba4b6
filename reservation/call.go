package reservation

import (
	"errors"
	"time"
)

// These are the bounds of the parameters of a reservation.
const (
	// MinTTL and MaxTTL are the bounds of [Terms.TTL].
	MinTTL = time.Second
	MaxTTL = 86_400 * time.Second
	// MaxLive is the maximum of [Terms.Max].
	MaxLive = 1_000_000
)

// ErrEnded is the error of a call with the token of a reservation that has ended.
var ErrEnded = errors.New("the reservation has ended")

// ErrFamily is the error of a reservation, or of a settlement, for a limiter that cannot give back
// exactly what was reserved.
var ErrFamily = errors.New("RESERVE is for TB GREEDY, SW and CC")

// These are errors of a reservation of several keys, whose names are kept in a [Link].
var (
	// ErrFirst says that the key that the settlement names has no window and no bucket.
	ErrFirst = errors.New("the first limit of a reservation must be a window or a bucket")
	// ErrKeys says that there are more than [MaxKeys] keys, or more than [MaxKeyBytes] bytes.
	ErrKeys = errors.New("too many keys in a reservation")
)

// ErrNumbers is the error of a Commit whose Actuals are not as many as the windows and buckets of the
// reservation.
var ErrNumbers = errors.New("the number of actual quantities is not that of the reserved limits")

// These are errors of a [Commit] of more units than were reserved. The reservation stays live.
var (
	// ErrActual says that the limiter cannot count so many units.
	ErrActual = errors.New("the actual quantity is too large for the limiter")
	// ErrWarmup says that a bucket has become one of mode Warmup, which does not store its rate.
	ErrWarmup = errors.New("a bucket with WARMUP cannot be charged beyond what was reserved")
)

// Terms makes a charging call a reservation. The zero value makes none.
type Terms struct {
	// TTL is the time, from the call on, after which the units are given back without a settlement,
	// from [MinTTL] to [MaxTTL]; 0 if the call is not a reservation.
	TTL time.Duration
	// Max is the maximum number of live reservations of a key, from 1 to [MaxLive]. A call that
	// would make more is denied.
	Max uint32
	// Of is the number of windows and buckets of a reservation that several calls make together; 0 if the call has all
	// windows and buckets of the reservation.
	Of uint8
	// Linked says that the keys of the reservation do not follow from the arguments of its settlement, so that one of
	// them has a [Link]. If Link is true, this call makes the link: at the key of its first window or bucket, with the
	// other keys in Keys. Otherwise another call of the reservation makes the link.
	Linked, Link bool
	Keys         [][]byte
	// Free makes a reservation without units, which the limits cannot deny. It is for a call that
	// passes although it was not charged.
	Free bool
}

// Op is the operation of a [Settlement].
type Op uint8

// These are the operations of a [Settlement], each with its command.
const (
	Commit Op = iota + 1 // RL.COMMIT
	Cancel               // RL.CANCEL
	Renew                // RL.RENEW
)

// Settlement is a call that ends or extends a reservation.
type Settlement struct {
	Op Op
	// Actual is the number of units that Commit charges, from 0.
	Actual int64
	// Actuals, if not nil, replaces Actual for a reservation of several limits: it has the number of units for each
	// window and bucket, at least two, in the order of the clauses.
	Actuals []int64
	// TTL is the time of Renew, from the call on: from [MinTTL] to [MaxTTL].
	TTL time.Duration
}

// Outcome is the answer to a [Settlement]. Clients see it as this number.
type Outcome int64

// These are the outcomes.
const (
	// Unknown means that the key does not know the reservation. Nothing is charged.
	Unknown Outcome = -1
	// Before means that the reservation had been settled before, or that Renew was called after its
	// end. Nothing changes.
	Before Outcome = 0
	// Done means that the reservation is settled, or extended.
	Done Outcome = 1
	// Late means that the reservation had passed its time and its units had been given back, so
	// that Commit has charged the actual units now.
	Late Outcome = 2
)
