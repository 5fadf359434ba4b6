package arg

import (
	"math"
	"strconv"

	"github.com/cellserver/cellserver/resp"
)

// Int parses b as a decimal int64, as Redis' string2ll does: with an optional minus, but without a
// plus, leading zeros or spaces. It returns false for any other text and for an overflow.
func Int(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	if len(b) == 1 && b[0] == '0' {
		return 0, true
	}
	neg := b[0] == '-'
	if neg {
		b = b[1:]
		if len(b) == 0 {
			return 0, false
		}
	}
	if b[0] < '1' || b[0] > '9' {
		return 0, false
	}
	return digits(b, neg)
}

// CellInt parses b as a decimal int64, as Rust's i64::from_str does, which redis-cell uses: with an
// optional sign and any number of leading zeros. It returns false for any other text and for an
// overflow.
func CellInt(b []byte) (int64, bool) {
	if len(b) == 0 {
		return 0, false
	}
	neg := b[0] == '-'
	if neg || b[0] == '+' {
		b = b[1:]
	}
	if len(b) == 0 {
		return 0, false
	}
	return digits(b, neg)
}

// Short parses b if it consists of one to four digits. Most integers do, and Short is small enough
// to be inlined. If ok is false, b may still be a valid integer.
func Short(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 4 {
		return 0, false
	}
	for _, c := range b {
		d := c - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + int64(d)
	}
	return n, true
}

// digits parses b as the digits of a decimal int64. neg says that the number is negative. digits
// returns false if b has any other character, and for an overflow.
func digits(b []byte, neg bool) (int64, bool) {
	if len(b) < 19 { // a number of so few digits cannot overflow
		var n int64
		for _, c := range b {
			d := c - '0'
			if d > 9 {
				return 0, false
			}
			n = n*10 + int64(d)
		}
		if neg {
			n = -n
		}
		return n, true
	}
	var u uint64
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 || u > (math.MaxUint64-d)/10 {
			return 0, false
		}
		u = u*10 + d
	}
	switch {
	case neg && u <= 1<<63:
		return -int64(u), true
	case !neg && u <= math.MaxInt64:
		return int64(u), true
	}
	return 0, false
}

// IsWord reports whether b equals w, a word of upper-case ASCII letters, without regard to the case
// of b.
func IsWord(b []byte, w string) bool {
	if len(b) != len(w) {
		return false
	}
	for i := range len(w) {
		c := b[i]
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != w[i] {
			return false
		}
	}
	return true
}

// StartsNumber reports whether b begins with a digit or a sign. With StartsNumber, commands of
// limiters distinguish an optional quantity from option words.
func StartsNumber(b []byte) bool {
	return len(b) > 0 && (b[0]-'0' <= 9 || b[0] == '+' || b[0] == '-')
}

// Once sets *option, which says that the option word was given. If *option is set already, Once
// returns a syntax error near word, otherwise "".
func Once(word []byte, option *bool) resp.Error {
	if *option {
		return resp.SyntaxNear(word)
	}
	*option = true
	return ""
}

// Positive parses b, the argument called name, as an integer of at least 1, and sets *n. The error
// is "" on success.
func Positive(b []byte, name string, n *int64) resp.Error {
	return AtLeast(b, name, 1, n)
}

// AtLeast parses b, the argument called name, as an integer whose minimum is least, and sets *n.
// The error is "" on success.
func AtLeast(b []byte, name string, least int64, n *int64) resp.Error {
	v, ok := Int(b)
	if !ok || v < least {
		return notAtLeast(b, name, least, ok)
	}
	*n = v
	return ""
}

// notAtLeast returns the error of AtLeast. isInt says whether b is an integer. It is a function of
// its own so that AtLeast needs no stack for the error.
func notAtLeast(b []byte, name string, least int64, isInt bool) resp.Error {
	if !isInt {
		return resp.Argument(resp.ErrNotInteger, name, b, "an integer")
	}
	return resp.Argument(resp.ErrNotPositive, name, b, "at least "+strconv.FormatInt(least, 10))
}

// Time parses b, the argument called name, as a time: an integer of at least 1, in seconds or, with
// the command's option MS, in milliseconds. It sets *n. The error is "" on success.
func Time(b []byte, name string, n *int64) resp.Error {
	v, ok := Int(b)
	if !ok || v < 1 {
		return noTime(b, name, ok)
	}
	*n = v
	return ""
}

func noTime(b []byte, name string, isInt bool) resp.Error {
	is := resp.ErrNotPositive
	if !isInt {
		is = resp.ErrNotInteger
	}
	return resp.Argument(is, name, b, "an integer of at least 1, in seconds, or with MS in milliseconds")
}

// Quantity parses b as the quantity of a limiter command, which may be any integer, and sets *n.
// The error is "" on success.
func Quantity(b []byte, n *int64) resp.Error {
	v, ok := Int(b)
	if !ok {
		return resp.Argument(resp.ErrNotInteger, "quantity", b, "an integer")
	}
	*n = v
	return ""
}
