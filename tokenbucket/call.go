package tokenbucket

import (
	"math"
	"math/bits"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// NoLimit as the value of [Call.MaxWait] accepts any wait.
const NoLimit time.Duration = math.MaxInt64

// Charge is the way in which a call takes its quantity.
type Charge uint8

// The ways of charging.
const (
	// Whole takes the whole quantity or nothing.
	Whole Charge = iota
	// Peek answers like Whole and changes nothing.
	Peek
	// Partial takes as many of the tokens as there are.
	Partial
	// Force takes the whole quantity even if that overdraws the bucket.
	Force
)

// Call has the parameters of one call. It may be reused. [Decide] requires calls that
// [Call.Validate] accepts.
type Call struct {
	Mode   Mode
	Charge Charge

	// Capacity is the maximum number of tokens in the bucket. 0 refuses every call with a positive
	// quantity, in every mode.
	Capacity int64
	// Count tokens are added per Period; both are at least 1. Period saturates at the end of int64.
	// Interval mode uses them, the other modes use Interval.
	Count  int64
	Period time.Duration
	// Interval is T, the time of one token: [limit.Interval] of period and count.
	Interval time.Duration
	// Quantity is the number of requested tokens: 0 only reads the state, and a negative number
	// gives tokens back.
	Quantity int64
	// Init is the number of tokens of a key that this call creates, from 0 to Capacity; Capacity
	// unless the call sets it.
	Init int64

	// MaxWait is how long the caller is ready to wait for tokens that it takes now. Waits says that
	// MaxWait was given, even if it is 0. Leaky needs the difference: its queue waits for any time
	// unless MaxWait was given.
	MaxWait time.Duration
	Waits   bool

	// Warmup and Cold are the parameters of Warmup mode: the duration of the warm-up, and the price
	// in T of the first permit of a cold bucket (at least 1; Guava's default is 3). Cold is a
	// factor of Guava's curve and therefore a double.
	Warmup time.Duration
	Cold   float64

	// Denied decides as if the call were refused, whatever the bucket holds. It is for a clause of
	// a call with several limits of which another one refuses: the answer is that of Peek, and what
	// a refusal stores is stored.
	Denied bool

	// Millis and Block do not affect the decision; the command uses them. Millis replies in
	// milliseconds. Block delays the reply of a grant by its wait.
	Millis, Block bool
}

// Validate checks whether the parameters can be used in calculations, without a stored state. The
// error is [limit.ErrRateTooHigh] if a token takes less than a nanosecond, and [limit.ErrOverflow]
// if a duration that follows from the parameters alone would exceed 2^62 ns (2^61 ns for the
// warm-up).
func (c *Call) Validate() error {
	switch {
	case c.Interval <= 0:
		return limit.ErrRateTooHigh
	case exceeds(c.Interval, uint64(c.Capacity)):
		return limit.ErrOverflow
	case c.Mode == Debt && c.Quantity > 0 && c.Capacity > 0 && exceeds(c.Interval, uint64(c.Capacity)+uint64(c.Quantity)):
		return limit.ErrOverflow
	case c.Mode == Warmup && (c.Warmup > maxWarmup || float64(c.Interval)*c.Cold > float64(maxDebt)):
		return limit.ErrOverflow
	}
	return nil
}

// exceeds reports whether d*n is more than maxDebt; d must not be negative.
func exceeds(d time.Duration, n uint64) bool {
	hi, lo := bits.Mul64(uint64(d), n)
	return hi != 0 || lo > uint64(maxDebt)
}

// looks reports whether the call is answered like a Peek.
func (c *Call) looks() bool { return c.Charge == Peek || c.Denied }

// startsShort reports whether new keys of the call start below capacity.
func (c *Call) startsShort() bool { return c.Init < c.Capacity }

// need returns the smallest balance, in whole tokens, at which the call passes in its mode. It is
// for calls whose bucket is still stored in another form. A Warmup call has no such balance.
func (c *Call) need() int64 {
	quantity := c.Quantity
	if c.Charge == Partial {
		quantity = 1
	}
	switch c.Mode {
	case Debt:
		return -int64(c.MaxWait / c.Interval)
	case Interval:
		return limit.SatSub(quantity, limit.SatMul(int64(c.MaxWait/c.Period), c.Count))
	case Leaky:
		if c.Waits {
			quantity = max(quantity, c.Capacity-int64(c.MaxWait/c.Interval))
		}
		return quantity
	}
	return limit.SatSub(quantity, int64(c.MaxWait/c.Interval))
}
