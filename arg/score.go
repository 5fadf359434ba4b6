package arg

import (
	"bytes"
	"math"
	"strconv"
)

// Score parses b as a score, as Redis does with C's strtod: it may be decimal or hexadecimal, or
// "inf" or "infinity", but not NaN, and no other text may surround it. ok is false for any other
// text, for a number that overflows a double, and for a number other than 0 that underflows to 0.
func Score(b []byte) (score float64, ok bool) {
	if n, ok := SmallInteger(b); ok {
		return n, true
	}
	f, err := Double(b)
	switch {
	case err || math.IsNaN(f):
		return 0, false
	case math.IsInf(f, 0):
		// If the text is an infinity, it has no digits.
		return f, !bytes.ContainsAny(b, "0123456789")
	case f == 0:
		return f, zeroDigits(b)
	}
	return f, true
}

// SmallInteger parses b if it consists of one to 15 digits, as most scores do. A double represents
// such a number exactly. If ok is false, b may still be a valid number.
func SmallInteger(b []byte) (float64, bool) {
	if len(b) == 0 || len(b) > 15 {
		return 0, false
	}
	n := int64(0)
	for _, c := range b {
		d := c - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + int64(d)
	}
	return float64(n), true
}

// Double parses the whole of b as C's strtod does, including C's hexadecimal notation and NaN, but
// without spaces before the number. A number that is too large becomes infinite. failed is true if
// b is no number.
func Double(b []byte) (f float64, failed bool) {
	if bytes.IndexByte(b, '_') >= 0 {
		return 0, true // only Go permits underscores in numbers
	}
	text := b
	if isHex(b) && !bytes.ContainsAny(b, "pP") {
		text = append(append(make([]byte, 0, len(b)+2), b...), "p0"...) // Go requires an exponent in hexadecimal numbers
	}
	f, err := strconv.ParseFloat(string(text), 64)
	return f, err != nil && !math.IsInf(f, 0)
}

func isHex(b []byte) bool {
	if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
		b = b[1:]
	}
	return len(b) > 1 && b[0] == '0' && b[1]|0x20 == 'x'
}

// zeroDigits reports whether all digits of the number b before its exponent are 0.
func zeroDigits(b []byte) bool {
	end, digits := "eE", "123456789"
	if isHex(b) {
		end, digits = "pP", "123456789abcdefABCDEF"
	}
	if i := bytes.IndexAny(b, end); i >= 0 {
		b = b[:i]
	}
	return !bytes.ContainsAny(b, digits)
}
