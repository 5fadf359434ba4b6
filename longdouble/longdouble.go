package longdouble

import (
	"bytes"
	"errors"
	"math"
	"math/big"
)

const (
	mantissaBits = 64
	// maxExponent is the largest exponent, as defined by big.Float.MantExp.
	maxExponent = 16384
	// maxText is one more than the length of the longest number that Redis reads.
	maxText = 5 * 1024
)

// Parse parses a number as string2ld of Redis does. It accepts what C's strtold accepts, except for
// white space in front, NaN, numbers out of range, and texts of 5 KiB or more. Infinities are
// accepted. ok is false for anything else.
func Parse(b []byte) (x *big.Float, ok bool) {
	if len(b) == 0 || len(b) >= maxText {
		return nil, false
	}
	neg := b[0] == '-'
	if neg || b[0] == '+' {
		b = b[1:]
	}
	x = newNumber()
	switch {
	case bytes.EqualFold(b, []byte("inf")), bytes.EqualFold(b, []byte("infinity")):
		x.SetInf(neg)
		return x, true
	case len(b) > 2 && b[0] == '0' && b[1]|0x20 == 'x':
		ok = scanNumber(x, b[2:], 16)
	default:
		ok = scanNumber(x, b, 10)
	}
	if !ok {
		return nil, false
	}
	if neg {
		x.Neg(x)
	}
	return x, true
}

func newNumber() *big.Float { return new(big.Float).SetPrec(mantissaBits) }

// scanNumber sets x to the number in b. b has digits, among them at most one point, and after these
// an optional exponent. In base 10 the exponent is a power of ten after "e"; in base 16 it is a
// power of two after "p". scanNumber returns false if b is malformed or the number is out of range.
func scanNumber(x *big.Float, b []byte, base int) bool {
	mark := byte('e')
	if base == 16 {
		mark = 'p'
	}
	exponent := int64(0)
	if i := bytes.IndexFunc(b, func(r rune) bool { return r == rune(mark) || r == rune(mark-'a'+'A') }); i >= 0 {
		var ok bool
		if exponent, ok = scanExponent(b[i+1:]); !ok {
			return false
		}
		b = b[:i]
	}
	digits := make([]byte, 0, len(b))
	for i, c := range b {
		if c == '.' && len(digits) == i {
			perDigit := int64(1)
			if base == 16 {
				perDigit = 4
			}
			exponent -= perDigit * int64(len(b)-i-1)
			continue
		}
		if !isDigit(c, base) {
			return false
		}
		digits = append(digits, c)
	}
	if len(digits) == 0 {
		return false
	}
	mantissa, ok := new(big.Int).SetString(string(digits), base)
	return ok && scale(x, mantissa, base, exponent)
}

func isDigit(c byte, base int) bool {
	l := c | 0x20 // the character in lower case, if it is a letter
	return '0' <= c && c <= '9' || base == 16 && 'a' <= l && l <= 'f'
}

// scanExponent reads a decimal exponent of any length. An exponent above math.MaxInt32 becomes
// math.MaxInt32, which is out of range in any case, and an exponent below -math.MaxInt32 becomes
// -math.MaxInt32. ok is false if b is malformed.
func scanExponent(b []byte) (n int64, ok bool) {
	if len(b) == 0 {
		return 0, false
	}
	neg := b[0] == '-'
	if neg || b[0] == '+' {
		b = b[1:]
	}
	for _, c := range b {
		if c -= '0'; c > 9 {
			return 0, false
		}
		n = min(n*10+int64(c), math.MaxInt32)
	}
	if neg {
		n = -n
	}
	return n, len(b) > 0
}

// scale sets x to mantissa × 10^exponent, or to mantissa × 2^exponent in base 16, rounded once. It
// returns false if the number is out of range.
func scale(x *big.Float, mantissa *big.Int, base int, exponent int64) bool {
	const beyond = 4 * maxText // with an exponent beyond this one, the number is out of range for any mantissa
	switch {
	case mantissa.Sign() == 0:
		return true
	case base == 16:
		if exponent > 8*beyond || exponent < -8*beyond {
			return false
		}
		x.SetInt(mantissa)
		x.SetMantExp(x, int(exponent))
	case exponent > beyond || exponent < -beyond:
		return false
	case exponent >= 0:
		x.SetInt(mantissa.Mul(mantissa, powerOfTen(exponent)))
	default:
		x.Quo(exactly(mantissa), exactly(powerOfTen(-exponent)))
	}
	return x.MantExp(nil) <= maxExponent && x.Cmp(nothing) > 0
}

// nothing is half of the smallest positive long double. C's strtold rounds a positive number of
// this size or less to 0, and reports it as out of range.
var nothing = new(big.Float).SetMantExp(big.NewFloat(1), -16446)

func powerOfTen(n int64) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil) }

// exactly returns n with as many bits of precision as it needs.
func exactly(n *big.Int) *big.Float { return new(big.Float).SetInt(n) }

// Max returns the largest finite number, LDBL_MAX on x86.
func Max() *big.Float {
	most := new(big.Int).Lsh(big.NewInt(1), mantissaBits)
	x := newNumber().SetInt(most.Sub(most, big.NewInt(1)))
	return x.SetMantExp(x, maxExponent-mantissaBits)
}

// Neg returns -x. It does not change x.
func Neg(x *big.Float) *big.Float { return newNumber().Neg(x) }

// Add returns x+y. ok is false if x, y or the sum is not finite.
func Add(x, y *big.Float) (sum *big.Float, ok bool) {
	if x.IsInf() || y.IsInf() {
		return nil, false
	}
	sum = newNumber().Add(x, y)
	return sum, sum.MantExp(nil) <= maxExponent
}

// Append appends x in decimal, with up to 17 digits after the point, and returns the extended
// slice. x must be finite.
func Append(dst []byte, x *big.Float) []byte {
	from := len(dst)
	dst = x.Append(dst, 'f', 17)
	dst = bytes.TrimRight(dst, "0") // the text has a point, so the zeros at the end belong to the fraction
	dst = bytes.TrimSuffix(dst, []byte("."))
	if string(dst[from:]) == "-0" {
		return append(dst[:from], '0')
	}
	return dst
}

// These are the errors of [AddTexts]: ErrNotFloat if an operand is not a number, and ErrNotFinite
// if the sum is not finite.
var (
	ErrNotFloat  = errors.New("not a number")
	ErrNotFinite = errors.New("sum is not finite")
)

// AddTexts returns the sum of two numbers in decimal, calculated in the 80-bit numbers of x86 as
// Redis does. The error is [ErrNotFloat] if a or b is not a number, and [ErrNotFinite] if the sum,
// a or b is not finite.
func AddTexts(a, b []byte) (sum []byte, err error) {
	x, ok := Parse(a)
	if !ok {
		return nil, ErrNotFloat
	}
	y, ok := Parse(b)
	if !ok {
		return nil, ErrNotFloat
	}
	z, ok := Add(x, y)
	if !ok {
		return nil, ErrNotFinite
	}
	return Append(nil, z), nil
}
