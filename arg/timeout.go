package arg

import (
	"bytes"
	"math"
	"strconv"
	"time"

	"github.com/cellserver/cellserver/resp"
)

// Timeout parses the timeout of BLOCK, a decimal number of units, which may have a fraction like
// the timeout of BLPOP. unit is a second or a millisecond. 0 means that there is no timeout. A
// fraction of a nanosecond is rounded up, so that a positive timeout never becomes 0. The result is
// exact, since a decision may depend on it, except that a number with an exponent is converted
// through a double. A number that does not fit into int64 nanoseconds is an error. The error is ""
// on success.
func Timeout(b []byte, unit time.Duration) (time.Duration, resp.Error) {
	if bytes.ContainsAny(b, "eE") {
		return timeoutExponent(b, unit)
	}
	negative := len(b) > 0 && b[0] == '-'
	if negative || len(b) > 0 && b[0] == '+' {
		b = b[1:]
	}
	whole, fraction, _ := bytes.Cut(b, []byte("."))
	if len(whole)+len(fraction) == 0 {
		return 0, resp.ErrTimeoutNotFloat
	}
	ns, ok := timeoutDigits(whole, fraction, uint64(unit))
	switch {
	case !ok:
		return 0, resp.ErrTimeoutNotFloat
	case negative && ns > 0:
		return 0, resp.ErrTimeoutNegative
	}
	return time.Duration(ns), ""
}

// timeoutDigits returns the number whole.fraction times unit, in nanoseconds, rounded up. ok is
// false if that overflows an int64, or if whole or fraction contains a character that is no digit.
func timeoutDigits(whole, fraction []byte, unit uint64) (uint64, bool) {
	most := math.MaxInt64 / unit
	var n uint64
	for _, c := range whole {
		d := uint64(c - '0')
		if d > 9 || n > (most-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	n *= unit
	for _, c := range fraction {
		d := uint64(c - '0')
		if d > 9 {
			return 0, false
		}
		if unit >= 10 {
			unit /= 10
			n += d * unit
		} else if d > 0 && unit == 1 {
			n++
			unit = 0 // the value is rounded up only once
		}
	}
	return n, n <= math.MaxInt64
}

func timeoutExponent(b []byte, unit time.Duration) (time.Duration, resp.Error) {
	for _, c := range b {
		// Go would accept underscores and hexadecimal numbers, too.
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return 0, resp.ErrTimeoutNotFloat
		}
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if mantissa, _, _ := bytes.Cut(bytes.ToLower(b), []byte("e")); f == 0 && b[0] != '-' && bytes.ContainsAny(mantissa, "123456789") {
		f = math.SmallestNonzeroFloat64 // the number is so small that it becomes 0
	}
	switch ns := math.Ceil(f * float64(unit)); {
	case err != nil || ns >= math.MaxInt64:
		return 0, resp.ErrTimeoutNotFloat
	case f < 0:
		return 0, resp.ErrTimeoutNegative
	default:
		return time.Duration(ns), ""
	}
}
