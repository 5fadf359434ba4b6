package libraries

import (
	"math"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/sandbox"
	"github.com/cellserver/cellserver/lua/value"
)

// spec is one conversion in a format of string.format: %[flags][width][.precision]letter.
type spec struct {
	minus, plus, space, sharp, zero bool
	width, precision                int // precision is -1 if the format does not have one
}

// format implements string.format with those conversions of C's printf that Lua 5.1 has.
func (r *Runtime) format(l *glua.LState) int {
	text := sandbox.CheckText(l, 1)
	b := r.Guard.NewBuilder(l)
	arg := 1
	for i := 0; i < len(text); {
		c := text[i]
		i++
		if c != '%' {
			b.Put(c)
			continue
		}
		if i < len(text) && text[i] == '%' {
			b.Put('%')
			i++
			continue
		}
		var s spec
		i = s.read(l, text, i)
		if i >= len(text) {
			sandbox.Raisef(l, "invalid option '%%' to 'format'")
		}
		arg++
		if arg > l.GetTop() {
			sandbox.ArgError(l, arg, "no value")
		}
		convert(l, &b, s, text[i], arg)
		i++
	}
	l.Push(b.Value())
	return 1
}

// read parses the flags, the width and the precision at index i of text. It returns the index of
// the letter, or the length of text if there is none. More than five flags raise an error.
func (s *spec) read(l *glua.LState, text string, i int) int {
	start := i
	for ; i < len(text); i++ {
		switch text[i] {
		case '-':
			s.minus = true
		case '+':
			s.plus = true
		case ' ':
			s.space = true
		case '#':
			s.sharp = true
		case '0':
			s.zero = true
		default:
			if i-start > 5 {
				sandbox.Raisef(l, "invalid format (repeated flags)")
			}
			return s.sizes(l, text, i)
		}
	}
	return i
}

func (s *spec) sizes(l *glua.LState, text string, i int) int {
	s.precision = -1
	s.width, i = twoDigits(text, i)
	if i < len(text) && text[i] == '.' {
		s.precision, i = twoDigits(text, i+1)
	}
	if i < len(text) && value.IsDigit(text[i]) {
		sandbox.Raisef(l, "invalid format (width or precision too long)")
	}
	return i
}

func twoDigits(text string, i int) (int, int) {
	n := 0
	for end := i + 2; i < end && i < len(text) && value.IsDigit(text[i]); i++ {
		n = n*10 + int(text[i]-'0')
	}
	return n, i
}

func convert(l *glua.LState, b *sandbox.Builder, s spec, letter byte, arg int) {
	switch letter {
	case 'c':
		b.WriteString(s.pad(string([]byte{byte(sandbox.CheckInt(l, arg))})))
	case 'd', 'i':
		n := sandbox.CheckInt(l, arg)
		digits := strconv.FormatUint(magnitude(n), 10)
		b.WriteString(s.integer(s.signOf(n < 0), "", digits))
	case 'u', 'o', 'x', 'X':
		b.WriteString(s.unsigned(letter, toUnsigned(sandbox.CheckNumber(l, arg))))
	case 'e', 'E', 'f', 'g', 'G':
		b.WriteString(s.float(letter, sandbox.CheckNumber(l, arg)))
	case 'q':
		quote(b, sandbox.CheckText(l, arg))
	case 's':
		text := sandbox.CheckText(l, arg)
		if s.precision >= 0 && s.precision < len(text) {
			text = text[:s.precision]
		}
		b.WriteString(s.pad(text))
	default:
		sandbox.Raisef(l, "invalid option '%%%c' to 'format'", rune(letter))
	}
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

// toUnsigned converts f to an unsigned integer as compilers for x86-64 do for a cast to unsigned
// long long.
func toUnsigned(f float64) uint64 {
	if f >= 9223372036854775808.0 {
		if f >= 18446744073709551616.0 {
			return 0
		}
		return uint64(f)
	}
	return uint64(value.Truncate(f))
}

func (s spec) signOf(negative bool) string {
	switch {
	case negative:
		return "-"
	case s.plus:
		return "+"
	case s.space:
		return " "
	}
	return ""
}

// integer returns sign, prefix and digits, padded to the precision and the width. As in C, a 0 with
// the precision 0 has no digits. The flag 0 pads with zeros unless there is a precision or the flag
// -.
func (s spec) integer(sign, prefix, digits string) string {
	if s.precision == 0 && digits == "0" {
		digits = ""
	}
	if missing := s.precision - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	if s.zero && !s.minus && s.precision < 0 {
		if missing := s.width - len(sign) - len(prefix) - len(digits); missing > 0 {
			digits = strings.Repeat("0", missing) + digits
		}
	}
	return s.pad(sign + prefix + digits)
}

func (s spec) unsigned(letter byte, n uint64) string {
	switch letter {
	case 'o':
		digits := strconv.FormatUint(n, 8)
		if s.sharp && digits[0] != '0' && s.precision <= len(digits) {
			digits = "0" + digits
		}
		return s.integer("", "", digits)
	case 'x', 'X':
		prefix, digits := "", strconv.FormatUint(n, 16)
		if s.sharp && n != 0 {
			prefix = "0x"
		}
		if letter == 'X' {
			prefix, digits = strings.ToUpper(prefix), strings.ToUpper(digits)
		}
		return s.integer("", prefix, digits)
	}
	return s.integer("", "", strconv.FormatUint(n, 10))
}

func (s spec) float(letter byte, f float64) string {
	sign := s.signOf(math.Signbit(f))
	upper := letter == 'E' || letter == 'G'
	if math.IsNaN(f) || math.IsInf(f, 0) {
		text := "inf"
		if math.IsNaN(f) {
			text = "nan"
		}
		if upper {
			text = strings.ToUpper(text)
		}
		return s.pad(sign + text)
	}
	precision := s.precision
	if precision < 0 {
		precision = 6
	}
	f = math.Abs(f)
	var digits string
	switch letter | 0x20 {
	case 'e':
		digits = strconv.FormatFloat(f, 'e', precision, 64)
	case 'f':
		digits = strconv.FormatFloat(f, 'f', precision, 64)
	default:
		digits = s.general(f, max(precision, 1))
	}
	if s.sharp && !strings.Contains(digits, ".") {
		mantissa, exponent, found := strings.Cut(digits, "e")
		digits = mantissa + "."
		if found {
			digits += "e" + exponent
		}
	}
	if upper {
		digits = strings.ToUpper(digits)
	}
	if s.zero && !s.minus {
		if missing := s.width - len(sign) - len(digits); missing > 0 {
			digits = strings.Repeat("0", missing) + digits
		}
	}
	return s.pad(sign + digits)
}

// general formats f as %g of C does: as the shorter of %e and %f, without trailing zeros unless
// s.sharp is true.
func (s spec) general(f float64, precision int) string {
	if !s.sharp {
		return strconv.FormatFloat(f, 'g', precision, 64)
	}
	scientific := strconv.FormatFloat(f, 'e', precision-1, 64)
	_, text, _ := strings.Cut(scientific, "e")
	exponent, _ := strconv.Atoi(text)
	if exponent < -4 || exponent >= precision {
		return scientific
	}
	return strconv.FormatFloat(f, 'f', precision-1-exponent, 64)
}

// pad pads text with spaces to the width.
func (s spec) pad(text string) string {
	missing := s.width - len(text)
	if missing <= 0 {
		return text
	}
	if s.minus {
		return text + strings.Repeat(" ", missing)
	}
	return strings.Repeat(" ", missing) + text
}

// quote appends s as %q does: as a string literal that Lua can read.
func quote(b *sandbox.Builder, s string) {
	b.Put('"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\', '\n':
			b.Put('\\')
			b.Put(c)
		case '\r':
			b.WriteString("\\r")
		case 0:
			b.WriteString("\\000")
		default:
			b.Put(c)
		}
	}
	b.Put('"')
}
