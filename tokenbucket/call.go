package tokenbucket

import (
	"math"
	"math/bits"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// NoLimit as [Call.MaxWait] accepts any wait.
const NoLimit time.Duration = math.MaxInt64

// Charge says how a call takes its quantity.
type Charge uint8

// The ways of charging.
const (
	// Whole takes all of the quantity or nothing.
	Whole Charge = iota
	// Peek answers what Whole would and changes nothing.
	Peek
	// Partial takes what there is of the quantity.
	Partial
	// Force takes all of the quantity even if that overdraws the bucket.
	Force
)

// Call holds the parameters of one call. It can be reused; [Call.Validate] has to
// accept it before [Decide] sees it.
type Call struct {
	Mode   Mode
	Charge Charge

	// Capacity is the most that the bucket holds. 0 refuses every call that asks for some,
	// whatever its mode.
	Capacity int64
	// Count tokens come per Period, both at least 1. Period is held at the end of
	// int64; Interval mode needs it, the others use Interval.
	Count  int64
	Period time.Duration
	// Interval is T, the time of one token: [limit.Interval] of period and count.
	Interval time.Duration
	// Quantity is how many tokens are asked for: 0 only looks, and a negative
	// number gives tokens back.
	Quantity int64
	// Init is how many tokens a key has that this call creates, from 0 to Capacity;
	// it is Capacity unless the call says otherwise.
	Init int64

	// MaxWait is how long the caller is ready to wait for tokens that it takes now,
	// 0 if it is not; Waits tells a wait of 0 from none at all, which is what Leaky
	// needs: its queue is always ready to wait.
	MaxWait time.Duration
	Waits   bool

	// Warmup and Cold are the parameters of Warmup mode: how long it takes to warm
	// up, and how many times T the first permit of a cold bucket costs (at least 1;
	// Guava's default is 3). Cold is a factor of Guava's curve, hence a double.
	Warmup time.Duration
	Cold   float64

	// Denied decides as if the call were refused whatever the bucket holds, for a
	// clause of a call over several limits of which another one refuses: the answer
	// is that of Peek, and what a refusal stores is stored.
	Denied bool

	// Millis and Block do not touch the decision; they are here for the command
	// that has to act on them. Millis replies in milliseconds. Block keeps the
	// caller waiting for as long as a grant tells it to.
	Millis, Block bool
}

// Validate reports whether the parameters can be calculated with at all. It needs no
// stored state: [limit.ErrRateTooHigh] if a token takes less than a nanosecond,
// [limit.ErrOverflow] if a duration that follows from the parameters alone would
// exceed 2^62 ns (2^61 ns for the warm-up).
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

// looks reports whether the answer is that of a Peek.
func (c *Call) looks() bool { return c.Charge == Peek || c.Denied }

// startsShort reports whether the call has keys start below capacity.
func (c *Call) startsShort() bool { return c.Init < c.Capacity }

// need returns the least balance, in whole tokens, at which the call passes in its
// mode. It is for calls whose bucket is still stored in another form; a Warmup call
// has no such balance.
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
