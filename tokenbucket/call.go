package tokenbucket

import (
	"math"
	"math/bits"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// NoLimit is the value of [Call.MaxWait] with which a call accepts any wait.
const NoLimit time.Duration = math.MaxInt64

// Charge is the way in which a call takes its quantity of tokens.
type Charge uint8

// These are the values of [Charge].
const (
	// Whole takes the whole quantity or nothing.
	Whole Charge = iota
	// Peek gives the same answer as Whole, and takes nothing.
	Peek
	// Partial takes as many tokens of the quantity as there are.
	Partial
	// Force takes the whole quantity even if that makes the balance negative.
	Force
)

// Call has the parameters of one call of TB.ACQUIRE. [Decide] must be called only with calls that
// [Call.Validate] accepts. A Call may be reused.
type Call struct {
	Mode   Mode
	Charge Charge

	// Capacity is the maximum number of tokens in the bucket. A capacity of 0 refuses every call
	// with a positive quantity, in every mode.
	Capacity int64
	// Count is the number of tokens that are added per Period. Count and Period are at least 1. A
	// period that is longer than math.MaxInt64 nanoseconds becomes that duration. Only Interval
	// mode uses them; the other modes use Interval.
	Count  int64
	Period time.Duration
	// Interval is T, the time of one token: [limit.Interval] of period and count.
	Interval time.Duration
	// Quantity is the number of requested tokens. 0 only reads the state, and a negative number
	// gives tokens back.
	Quantity int64
	// Init is the number of tokens in the bucket of a new key, from 0 to Capacity. It is Capacity
	// unless the call sets it.
	Init int64

	// Penalize makes a refused call count, too: it takes what there is and one token more. It is for the modes Greedy and
	// Interval, without waiting.
	Penalize bool

	// MaxWait is the time for which the caller is ready to wait for tokens that it takes now. Waits
	// says that the call sets MaxWait, even to 0. Leaky mode distinguishes a MaxWait of 0 from
	// none, since its queue lets calls wait for any time unless MaxWait is set.
	MaxWait time.Duration
	Waits   bool

	// Warmup and Cold are the parameters of Warmup mode. Warmup is the duration of the warm-up.
	// Cold is the price, in multiples of T, of the first permit of a cold bucket; it is at least 1,
	// and 3 by default, as in Guava. Cold is a factor of Guava's curve and therefore a double.
	Warmup time.Duration
	Cold   float64

	// Denied makes Decide act as if the bucket refused the call. It is set if the call has several
	// limits and another limit refuses the call. The answer is the same as for Peek, and the plan
	// stores what a refusal stores.
	Denied bool

	// Millis and Block do not affect the decision; the command uses them. Millis says that times
	// are replied in milliseconds. Block says that the reply of a grant is delayed by its wait.
	Millis, Block bool
}

// Validate returns nil if the parameters can be used in calculations, whatever state is stored.
// The error is [limit.ErrRateTooHigh] if a token takes less than a nanosecond, and
// [limit.ErrOverflow] if a duration that follows from the parameters alone would exceed 2^62 ns, or
// 2^61 ns for the warm-up.
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

// exceeds reports whether d*n is more than maxDebt. d must not be negative.
func exceeds(d time.Duration, n uint64) bool {
	hi, lo := bits.Mul64(uint64(d), n)
	return hi != 0 || lo > uint64(maxDebt)
}

// Promises reports whether RetryAfter of the answer, if the call is granted, is the time until the
// caller may use its tokens. After a Force that is so only in the modes Leaky and Warmup.
func (c *Call) Promises() bool { return c.Charge != Force || c.Mode == Leaky || c.Mode == Warmup }

// looks reports whether the call takes nothing, so that its answer is the answer to a Peek.
func (c *Call) looks() bool { return c.Charge == Peek || c.Denied }

// startsShort reports whether new keys of the call start with fewer tokens than the capacity.
func (c *Call) startsShort() bool { return c.Init < c.Capacity }

// need returns the smallest balance in whole tokens at which the call passes in its own mode. It is
// used when the bucket is stored in another mode. A Warmup call has no such balance.
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
