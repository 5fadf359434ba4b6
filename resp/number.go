package resp

import (
	"math"
	"strconv"
)

// maxDoubleText is more than the length of the text of any double: a sign, seventeen digits, a
// point, leading zeros, and an exponent.
const maxDoubleText = 40

// maxExactInteger is the largest absolute value of a double that is written as an integer, as in
// Redis' double2ll: half the range of an int64, so that the conversion is exact.
const maxExactInteger = float64(math.MaxInt64 / 2)

// DecimalSize returns the number of characters of n in decimal, including a minus sign.
func DecimalSize(n int) int {
	size := 1
	if n < 0 {
		size++
	}
	for n /= 10; n != 0; n /= 10 {
		size++
	}
	return size
}

// BulkSize returns the number of bytes of an encoded bulk string of n bytes.
func BulkSize(n int) int {
	const kindAndLineEnds = 1 + 2 + 2
	return kindAndLineEnds + DecimalSize(n) + n
}

// AppendDouble appends f to dst as Redis 7.2 writes it (d2string in its src/util.c): with the
// fewest digits that read back as f.
func AppendDouble(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "nan"...)
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	case f == 0 && math.Signbit(f):
		return append(dst, "-0"...)
	case math.Abs(f) <= maxExactInteger && f == math.Trunc(f):
		return strconv.AppendInt(dst, int64(f), 10)
	}
	return appendShortest(dst, f)
}

// appendShortest appends f, which is finite and not zero, to dst with the fewest digits that read
// back as f. The form is the same as of Redis' fpconv_dtoa, which differs from Go's 'g'. An integer
// may end in up to seven zeros. A fraction is written without an exponent if it has at most six
// decimal places, or if its absolute value is at least 0.001 and less than 10,000. An exponent has
// no leading zero.
func appendShortest(dst []byte, f float64) []byte {
	var scratch [maxDoubleText]byte
	text := strconv.AppendFloat(scratch[:0], f, 'e', -1, 64) // the text has the form -d.ddde±dd
	if text[0] == '-' {
		dst = append(dst, '-')
		text = text[1:]
	}
	mark := len(text) - 1
	for text[mark] != 'e' {
		mark--
	}
	exponent := 0
	for _, c := range text[mark+2:] {
		exponent = exponent*10 + int(c-'0')
	}
	magnitude := exponent
	if text[mark+1] == '-' {
		exponent = -exponent
	}
	digits := text[:mark]
	if len(digits) > 1 {
		digits[1] = digits[0] // the first digit replaces the point, so that all digits are adjacent
		digits = digits[1:]
	}
	last := exponent - len(digits) + 1 // the power of ten that the last digit stands for

	switch {
	case last >= 0 && last < 8:
		dst = append(dst, digits...)
		return appendZeros(dst, last)
	case last < 0 && (last > -7 || magnitude < 4):
		if exponent < 0 {
			dst = append(dst, '0', '.')
			dst = appendZeros(dst, magnitude-1)
			return append(dst, digits...)
		}
		dst = append(dst, digits[:exponent+1]...)
		dst = append(dst, '.')
		return append(dst, digits[exponent+1:]...)
	}
	dst = append(dst, digits[0])
	if len(digits) > 1 {
		dst = append(dst, '.')
		dst = append(dst, digits[1:]...)
	}
	dst = append(dst, 'e', text[mark+1])
	return strconv.AppendInt(dst, int64(magnitude), 10)
}

func appendZeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}

// putInt writes ":n\r\n" to the beginning of b, which must have at least 24 bytes, and returns the
// number of bytes written. Most integers in the replies of limiters have one or two digits and need
// no loop. strconv writes the others.
func putInt(b []byte, n int64) int {
	_ = b[23]
	b[0] = ':'
	switch u := uint64(n); {
	case u < 10:
		b[1] = byte('0' + u)
		b[2] = '\r'
		b[3] = '\n'
		return 4
	case u < 100:
		b[1] = byte('0' + u/10)
		b[2] = byte('0' + u%10)
		b[3] = '\r'
		b[4] = '\n'
		return 5
	case n == -1:
		return copy(b, ":-1\r\n")
	}
	end := len(strconv.AppendInt(b[:1], n, 10))
	b[end] = '\r'
	b[end+1] = '\n'
	return end + 2
}

// parseLength returns the count or length in b. As in Redis' string2ll, b must have decimal digits
// only, with an optional minus sign and without leading zeros, and the number must fit into an
// int64. Otherwise ok is false.
func parseLength(b []byte) (n int64, ok bool) {
	if len(b) == 1 && b[0] == '0' {
		return 0, true
	}
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 19 || b[0] == '0' {
		return 0, false
	}
	var u uint64 // nineteen digits fit into it
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		u = u*10 + uint64(c-'0')
	}
	if negative {
		return -int64(u), u <= 1<<63
	}
	return int64(u), u <= math.MaxInt64
}
