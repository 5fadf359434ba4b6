package longdouble

import (
	"bytes"
	"errors"
	"math"
	"math/big"
)

const (
	mantissaBits = 64
	// maxExponent is the largest, in the sense of big.Float.MantExp.
	maxExponent = 16384
	// maxText is the longest number that Redis reads, and a byte.
	maxText = 5 * 1024
)

// Parse reads what Redis' string2ld does: what strtold does without spaces
// in front, but nothing that is NaN or out of range.
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

// scanNumber reads digits with at most one point among them and an exponent: of ten
// behind an e, or of two behind a p for hexadecimal ones.
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
	l := c | 0x20 // in lower case, if it is a letter
	return '0' <= c && c <= '9' || base == 16 && 'a' <= l && l <= 'f'
}

// scanExponent reads an exponent of any length; beyond what matters it stands still.
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

// scale makes x the number mantissa × 10^exponent, or 2^exponent in base 16, rounded
// once. It reports false for what is out of range.
func scale(x *big.Float, mantissa *big.Int, base int, exponent int64) bool {
	const beyond = 4 * maxText // no mantissa makes good for such an exponent
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

// nothing is what strtold rounds to 0, as everything below, and says that it did:
// half of the smallest number.
var nothing = new(big.Float).SetMantExp(big.NewFloat(1), -16446)

func powerOfTen(n int64) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil) }

// exactly is n in as many bits as it takes.
func exactly(n *big.Int) *big.Float { return new(big.Float).SetInt(n) }

// Max returns the largest number, LDBL_MAX of x86.
func Max() *big.Float {
	most := new(big.Int).Lsh(big.NewInt(1), mantissaBits)
	x := newNumber().SetInt(most.Sub(most, big.NewInt(1)))
	return x.SetMantExp(x, maxExponent-mantissaBits)
}

// Neg returns -x.
func Neg(x *big.Float) *big.Float { return newNumber().Neg(x) }

// Add adds; ok is false if x, y or the sum is no finite number.
func Add(x, y *big.Float) (sum *big.Float, ok bool) {
	if x.IsInf() || y.IsInf() {
		return nil, false
	}
	sum = newNumber().Add(x, y)
	return sum, sum.MantExp(nil) <= maxExponent
}

// Append appends x, which is finite, in decimal with up to 17 digits behind the point.
func Append(dst []byte, x *big.Float) []byte {
	from := len(dst)
	dst = x.Append(dst, 'f', 17)
	dst = bytes.TrimRight(dst, "0") // there is a point
	dst = bytes.TrimSuffix(dst, []byte("."))
	if string(dst[from:]) == "-0" {
		return append(dst[:from], '0')
	}
	return dst
}

// What is wrong with an operand of a sum, or with the sum.
var (
	ErrNotFloat  = errors.New("not a number")
	ErrNotFinite = errors.New("sum is not finite")
)

// AddTexts adds two numbers in decimal as Redis does, in the 80-bit numbers of x86.
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
