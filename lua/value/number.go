package value

import (
	"errors"
	"math"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// Append appends f as Lua 5.1 formats numbers, with C's "%.14g", and returns the extended slice.
func Append(b []byte, f float64) []byte {
	if i := int64(f); float64(i) == f && i > -100_000_000_000_000 && i < 100_000_000_000_000 && (i != 0 || !math.Signbit(f)) {
		return strconv.AppendInt(b, i, 10)
	}
	return AppendG(b, f, 14)
}

// AppendG appends f as C's "%.<digits>g" formats it, and returns the extended slice. A negative NaN
// is "-nan".
func AppendG(b []byte, f float64, digits int) []byte {
	switch {
	case math.IsNaN(f):
		if math.Signbit(f) {
			return append(b, "-nan"...)
		}
		return append(b, "nan"...)
	case math.IsInf(f, 1):
		return append(b, "inf"...)
	case math.IsInf(f, -1):
		return append(b, "-inf"...)
	}
	return strconv.AppendFloat(b, f, 'g', digits, 64)
}

// Spell returns n as Lua's tostring does.
func Spell(n glua.LNumber) string {
	var scratch [32]byte
	return string(Append(scratch[:0], float64(n)))
}

// IsSpace reports whether c is ASCII white space, as C's isspace does.
func IsSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// IsDigit reports whether c is a decimal digit, as C's isdigit does.
func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

// IsLetter reports whether c is an ASCII letter, as C's isalpha does.
func IsLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// Parse parses a number as Lua 5.1 does. It accepts what C's strtod accepts, including hexadecimal
// numbers, with white space around it; a number too large is infinite. The second result is false
// if s is not a number. The interpreter itself differs: it reads octal numbers (#478 of
// gopher-lua), and accepts no exponents in tonumber (#472).
func Parse(s string) (float64, bool) {
	for len(s) > 0 && IsSpace(s[0]) {
		s = s[1:]
	}
	for len(s) > 0 && IsSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	if s == "" || strings.IndexByte(s, '_') >= 0 {
		return 0, false
	}
	digits, negative := s, false
	if s[0] == '-' || s[0] == '+' {
		digits, negative = s[1:], s[0] == '-'
	}
	if digits == "" || digits[0] == '-' || digits[0] == '+' {
		return 0, false
	}
	if len(digits) > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') {
		return parseHex(digits[2:], negative)
	}
	if name := strings.ToLower(digits); name == "nan" || strings.HasPrefix(name, "nan(") && strings.HasSuffix(name, ")") {
		// strtod keeps the sign of a NaN, and Append writes it.
		return math.Copysign(math.NaN(), sign(negative)), true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) && f != 0 {
		return 0, false
	}
	return f, err == nil || isRange(err)
}

func sign(negative bool) float64 {
	if negative {
		return -1
	}
	return 1
}

func isRange(err error) bool { return errors.Is(err, strconv.ErrRange) }

// parseHex parses s, the text after "0x". Like strtod of glibc, it also accepts fractions and
// binary exponents.
func parseHex(s string, negative bool) (float64, bool) {
	text := "0x" + s
	if !strings.ContainsAny(s, "pP") {
		text += "p0"
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !isRange(err) {
		return 0, false
	}
	if negative {
		f = -f
	}
	return f, true
}

// ParseBase parses an integer in the given base, which is not 10, as C's strtoul does. A number too
// large becomes 2^64-1 instead of wrapping around, and a minus sign negates modulo 2^64. The second
// result is false if s is not such an integer.
func ParseBase(s string, base int) (float64, bool) {
	s = strings.TrimFunc(s, func(r rune) bool { return r < 128 && IsSpace(byte(r)) })
	negative := false
	if s != "" && (s[0] == '-' || s[0] == '+') {
		negative = s[0] == '-'
		s = s[1:]
	}
	if base == 16 && len(s) > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') {
		s = s[2:]
	}
	if s == "" || strings.IndexByte(s, '_') >= 0 || s[0] == '+' || s[0] == '-' {
		return 0, false
	}
	u, err := strconv.ParseUint(s, base, 64)
	if err != nil && !isRange(err) {
		return 0, false
	}
	if negative && err == nil {
		u = -u
	}
	return float64(u), true
}

// ToNumber returns v as a number, as lua_tonumber does. The second result is false unless v is a
// number or a string that Parse accepts.
func ToNumber(v glua.LValue) (float64, bool) {
	switch v := v.(type) {
	case glua.LNumber:
		return float64(v), true
	case glua.LString:
		return Parse(string(v))
	default:
		return 0, false
	}
}

// Text returns v as a string, as lua_tostring does. The second result is false unless v is a string
// or a number.
func Text(v glua.LValue) (string, bool) {
	switch v := v.(type) {
	case glua.LString:
		return string(v), true
	case glua.LNumber:
		return Spell(v), true
	default:
		return "", false
	}
}

// Truncate returns f as a 64-bit integer, as C's cast of a double on x86-64: it rounds towards
// zero, and returns the lowest integer for NaN and for values out of range.
func Truncate(f float64) int64 {
	if !(f > -9223372036854775808.0 && f < 9223372036854775808.0) {
		return math.MinInt64
	}
	return int64(f)
}
