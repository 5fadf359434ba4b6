package counter

import (
	"errors"
	"math"
	"math/big"
	"strconv"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/longdouble"
)

// Call is what one INCREX asks.
type Call struct {
	// By is added, unless Float is set. The sum has to be from Lower to Upper, both included, which
	// are the ends of int64 where a caller gives none.
	By, Lower, Upper int64
	// Float has the numbers of a call with fractions.
	Float *Floats

	// Saturate stores the nearest bound in place of a sum that is out of bounds.
	Saturate bool
	// IfAbsent and IfExists decline a call whose key exists, or does not.
	IfAbsent, IfExists bool

	// Expiry says what becomes of the expiry, and At when the key ends. An instant that has passed
	// removes the key.
	Expiry Expiry
	At     limit.Instant
}

// Floats are the numbers of a call with fractions. No bound is nil: [longdouble.Max] and its
// opposite stand for none. By is finite.
type Floats struct{ By, Lower, Upper *big.Float }

// Expiry says what a call does to the expiry of its key.
type Expiry uint8

// What a call does to the expiry.
const (
	Leave     Expiry = iota // it stays what it is
	Set                     // At
	SetIfNone               // At, for a key that never ends
	Never                   // the key never ends
)

// Action is what a plan does to its key.
type Action uint8

// The actions.
const (
	Keep   Action = iota // nothing
	Store                // the key holds the number, until Expiry
	Remove               // there is such a key, and it goes away
)

// Result is the answer: the number that the key holds now, and what was added to it.
type Result struct {
	Value, Applied int64
	// Texts has them, in this order, for a call with fractions; nil for others.
	Texts *[2]string
	// Denied says that nothing was added since the sum is out of bounds.
	Denied bool
}

// Decision returns r, the answer to c, as that of a limiter of c.Upper. Fractions are cut off. It
// knows no wait: the reply of INCREX has none.
func (c *Call) Decision(r *Result) limit.Decision {
	d := limit.Decision{Limit: c.Upper, Remaining: left(c.Upper, r.Value), RetryAfter: limit.NoRetry}
	if r.Texts != nil {
		number, _ := longdouble.Parse([]byte(r.Texts[0]))
		value, _ := number.Int64()
		d.Limit, _ = c.Float.Upper.Int64()
		d.Remaining = left(d.Limit, value)
	}
	if r.Denied {
		d.Refused = 1
	}
	return d
}

// left returns how far value is below upper, at least 0.
func left(upper, value int64) int64 { return max(0, limit.SatAdd(upper, -max(value, -math.MaxInt64))) }

// Plan is what was decided. It is scratch: [Decide] fills it.
type Plan struct {
	Action Action
	Expiry limit.Instant
	Result
}

// The errors of calls that change nothing. Others are [limit.ErrNotInteger] and
// [longdouble.ErrNotFloat], for what the key holds.
var (
	// ErrAppliedOverflow: the way to the bound is longer than int64 can say.
	ErrAppliedOverflow = errors.New("applied increment would overflow")
	// ErrAppliedInfinite is the same for numbers with fractions.
	ErrAppliedInfinite = errors.New("applied increment would be infinite")
	// ErrInfinite: the key holds an infinity.
	ErrInfinite = errors.New("stored number is infinite")
)

// MaxInteger is the longest text of an int64.
const MaxInteger = 20

// MaxText is the longest text that a call stores: an integer of 4,933 digits, a fraction of 17, a
// point and a sign.
const MaxText = 4933 + 17 + 2

// Decide judges c at now on what its key holds: value, until expiry, which is [limit.MaxInstant] for
// a key that never ends. exists is false without the key, or for one that has ended; value is not
// looked at then.
func Decide(value []byte, exists bool, expiry, now limit.Instant, c *Call, p *Plan) error {
	p.Action, p.Result = Keep, Result{}
	if !exists {
		value, expiry = zero, limit.MaxInstant
	}
	declined := c.IfAbsent && exists || c.IfExists && !exists
	var err error
	var passes bool
	if c.Float != nil {
		passes, err = p.addFloat(value, c, declined)
	} else {
		passes, err = p.addInt(value, c, declined)
	}
	if err != nil || !passes {
		return err
	}
	switch {
	case c.Expiry == Never:
		expiry = limit.MaxInstant
	case c.Expiry == Set, c.Expiry == SetIfNone && expiry == limit.MaxInstant:
		expiry = c.At
	}
	switch p.Expiry = expiry; {
	case expiry > now:
		p.Action = Store
	case exists:
		p.Action = Remove
	}
	return nil
}

var zero = []byte("0")

// addInt fills in the result in whole numbers, and reports whether it is to be stored.
func (p *Plan) addInt(value []byte, c *Call, declined bool) (passes bool, err error) {
	was, ok := ParseInt(value)
	if !ok {
		return false, limit.ErrNotInteger
	}
	p.Value, p.Applied = was, 0
	sum := limit.SatAdd(was, c.By)
	fits := sum-was == c.By && (sum < was) == (c.By < 0) && sum >= c.Lower && sum <= c.Upper
	if !fits {
		sum = max(c.Lower, min(c.Upper, sum))
	}
	p.Denied = !declined && !fits && (!c.Saturate || sum == was)
	if declined || !fits && !c.Saturate {
		return false, nil
	}
	applied := sum - was
	if (sum < was) != (applied < 0) {
		return false, ErrAppliedOverflow
	}
	p.Value, p.Applied = sum, applied
	return true, nil
}

// addFloat is addInt with fractions. What is applied is the difference of both numbers, which may
// differ from what was asked where the sum had to be rounded.
func (p *Plan) addFloat(value []byte, c *Call, declined bool) (passes bool, err error) {
	f := c.Float
	was, ok := longdouble.Parse(value)
	switch {
	case !ok:
		return false, longdouble.ErrNotFloat
	case was.IsInf():
		return false, ErrInfinite
	}
	p.Texts = &[2]string{text(was), "0"}
	sum, finite := longdouble.Add(was, f.By)
	if !finite {
		sum = new(big.Float).SetInf(f.By.Signbit())
	}
	fits := finite && sum.Cmp(f.Lower) >= 0 && sum.Cmp(f.Upper) <= 0
	if !fits {
		sum = nearest(sum, f)
	}
	p.Denied = !declined && !fits && (!c.Saturate || sum.Cmp(was) == 0)
	if declined || !fits && !c.Saturate {
		return false, nil
	}
	applied, finite := longdouble.Add(sum, longdouble.Neg(was))
	if !finite {
		return false, ErrAppliedInfinite
	}
	p.Texts = &[2]string{text(sum), text(applied)}
	return true, nil
}

// nearest is the number within the bounds of f that is nearest to x.
func nearest(x *big.Float, f *Floats) *big.Float {
	switch {
	case x.Cmp(f.Lower) < 0:
		return f.Lower
	case x.Cmp(f.Upper) > 0:
		return f.Upper
	}
	return x
}

func text(x *big.Float) string { return string(longdouble.Append(nil, x)) }

// Append appends what the key holds after [Store].
func (p *Plan) Append(dst []byte) []byte {
	if p.Texts != nil {
		return append(dst, p.Texts[0]...)
	}
	return strconv.AppendInt(dst, p.Value, 10)
}

// Check reports whether a text can be what a call has stored: digits, at most one point among them,
// and a minus in front. The error is [limit.ErrWrongType].
func Check(value []byte) error {
	digits := value
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	points := 0
	for i, b := range digits {
		switch {
		case b-'0' <= 9:
		case b == '.' && i > 0 && i < len(digits)-1 && points == 0:
			points++
		default:
			return limit.ErrWrongType
		}
	}
	if len(digits) == 0 || len(value) > MaxText {
		return limit.ErrWrongType
	}
	return nil
}

// ParseInt reads the number in a string as Redis does: only what it would write itself, without a
// plus or zeros in front.
func ParseInt(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > MaxInteger {
		return 0, false
	}
	digits := b
	if b[0] == '-' {
		digits = b[1:]
	}
	if len(digits) == 0 || digits[0] == '0' && len(b) > 1 {
		return 0, false
	}
	if len(digits) > 18 { // may not fit
		for _, c := range digits {
			if c-'0' > 9 {
				return 0, false
			}
		}
		n, err := strconv.ParseInt(string(b), 10, 64)
		return n, err == nil
	}
	for _, c := range digits {
		if c -= '0'; c > 9 {
			return 0, false
		}
		n = n*10 + int64(c)
	}
	if len(digits) < len(b) {
		n = -n
	}
	return n, true
}
