package counter

import (
	"errors"
	"math"
	"math/big"
	"strconv"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/longdouble"
)

// Call has the parameters of one INCREX.
type Call struct {
	// By is added to the number, unless Float is set. The sum must be from Lower to Upper, both
	// inclusive. If a call sets no bounds, they are math.MinInt64 and math.MaxInt64.
	By, Lower, Upper int64
	// Float has the numbers of a call with fractions. It is nil for a call with integers.
	Float *Floats

	// Saturate stores the nearest bound instead of a sum that is out of bounds.
	Saturate bool
	// IfAbsent makes the call change nothing if its key exists, and IfExists if its key does not
	// exist.
	IfAbsent, IfExists bool

	// Expiry says how the call changes the expiry of the key, and At is the new expiry. If At has
	// passed, the key is removed.
	Expiry Expiry
	At     limit.Instant
}

// Floats has the numbers of a call with fractions. None of them is nil. If a call sets no bounds,
// they are [longdouble.Max] and its negative. By is finite.
type Floats struct{ By, Lower, Upper *big.Float }

// Expiry says how a call changes the expiry of its key.
type Expiry uint8

// These are the values of [Expiry].
const (
	Leave     Expiry = iota // the call keeps the present expiry
	Set                     // the call sets the expiry to At
	SetIfNone               // the call sets the expiry to At if the key has none
	Never                   // the call removes the expiry
)

// Action is the kind of change that a plan makes to its key.
type Action uint8

// These are the values of [Action].
const (
	Keep   Action = iota // the plan changes nothing
	Store                // the plan stores the number, with Expiry
	Remove               // the plan removes the key
)

// Result is the answer to a call: Value is the number that the key holds after the call, and
// Applied is the number that was added to it.
type Result struct {
	Value, Applied int64
	// Texts has the same two numbers as texts, for a call with fractions. It is nil for a call with
	// integers.
	Texts *[2]string
	// Denied says that nothing was added, because the sum would be out of bounds.
	Denied bool
}

// Decision returns r, the answer to c, as the decision of a limiter whose limit is c.Upper.
// Fractions are truncated. RetryAfter is [limit.NoRetry], since the reply of INCREX has no wait.
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

// left returns upper - value, or 0 if value is above upper. A difference above math.MaxInt64
// becomes math.MaxInt64.
func left(upper, value int64) int64 { return max(0, limit.SatAdd(upper, -max(value, -math.MaxInt64))) }

// Plan is the result of [Decide] for one call. It belongs to the caller and may be reused.
type Plan struct {
	Action Action
	Expiry limit.Instant
	Result
}

// These are errors of [Decide], with which a call changes nothing. For a value that is not a
// number, the error is [limit.ErrNotInteger] or [longdouble.ErrNotFloat].
var (
	// ErrAppliedOverflow means that the difference to the bound exceeds int64.
	ErrAppliedOverflow = errors.New("applied increment would overflow")
	// ErrAppliedInfinite means that the difference to the bound is infinite, in a call with
	// fractions.
	ErrAppliedInfinite = errors.New("applied increment would be infinite")
	// ErrInfinite means that the key holds an infinity.
	ErrInfinite = errors.New("stored number is infinite")
)

// MaxInteger is the length in bytes of the longest text of an int64.
const MaxInteger = 20

// MaxText is the length in bytes of the longest text that a call stores: an integer of 4,933
// digits, a fraction of 17 digits, a point and a sign.
const MaxText = 4933 + 17 + 2

// Decide decides c at now and writes the result to p. The key holds value until expiry, which is
// [limit.MaxInstant] for a key without expiry. exists is false for an absent or expired key; value
// and expiry are ignored then. With an error, the plan changes nothing.
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

// addInt sets the result of a call with integers. passes is true if the result has to be stored.
// declined says that IfAbsent or IfExists prevents the change.
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

// addFloat does the same as addInt for a call with fractions. The number that was applied is the
// difference of the new and the old number. It may differ from By if the sum was rounded or replaced
// by a bound.
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

// nearest returns the number from f.Lower to f.Upper that is nearest to x.
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

// Append appends the text to store if p.Action is [Store], and returns the extended slice.
func (p *Plan) Append(dst []byte) []byte {
	if p.Texts != nil {
		return append(dst, p.Texts[0]...)
	}
	return strconv.AppendInt(dst, p.Value, 10)
}

// Check returns nil if value can have been stored by a call, otherwise [limit.ErrWrongType]. Such a
// value has at most [MaxText] bytes: an optional minus sign, digits, and at most one point between
// two of the digits.
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

// ParseInt parses the integer in a string as Redis does: it accepts only the form that Redis itself
// writes, without a plus sign or leading zeros. ok is false for anything else.
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
	if len(digits) > 18 { // a number with more digits may exceed int64
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
