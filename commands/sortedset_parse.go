package commands

import (
	"bytes"
	"math"
	"strconv"

	"github.com/cellserver/cellserver/resp"
)

// parseScore reads a score as Redis does, which is with C's strtod: decimal or
// hexadecimal, inf or infinity, but no NaN, nothing around it, and neither too large
// for a double nor too small to be other than 0.
func parseScore(b []byte) (score float64, ok bool) {
	if n, ok := smallInteger(b); ok {
		return n, true
	}
	f, err := parseDouble(b)
	switch {
	case err || math.IsNaN(f):
		return 0, false
	case math.IsInf(f, 0):
		// An infinity that is spelled has no digit.
		return f, !bytes.ContainsAny(b, "0123456789")
	case f == 0:
		return f, zeroDigits(b)
	}
	return f, true
}

// smallInteger reads up to 15 digits, which most scores are, and a double has exactly.
func smallInteger(b []byte) (float64, bool) {
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

// parseDouble is strtod for all of b, with C's spelling of hexadecimal numbers.
// What is too large is infinite.
func parseDouble(b []byte) (f float64, failed bool) {
	if bytes.IndexByte(b, '_') >= 0 {
		return 0, true // Go's own
	}
	text := b
	if isHex(b) && !bytes.ContainsAny(b, "pP") {
		text = append(append(make([]byte, 0, len(b)+2), b...), "p0"...) // Go wants an exponent
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

// zeroDigits says whether the digits of a number before its exponent are all 0.
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

// appendScore spells a score as Redis 7.0 does, C's "%.17g".
func appendScore(dst []byte, score float64) []byte {
	switch {
	case math.IsInf(score, 1):
		return append(dst, "inf"...)
	case math.IsInf(score, -1):
		return append(dst, "-inf"...)
	case score == math.Trunc(score) && math.Abs(score) < 1e15 && score != 0:
		return strconv.AppendInt(dst, int64(score), 10)
	}
	return strconv.AppendFloat(dst, score, 'g', 17, 64)
}

// scoreBound is one end of a range of scores.
type scoreBound struct {
	score     float64
	exclusive bool
}

// parseScoreBound reads a score, with ( before it for one that is not in the range.
// Redis is less strict here than with scores: there may be space in front, nothing is
// 0, a number too large is infinite, and a zero byte ends it.
func parseScoreBound(b []byte) (bound scoreBound, ok bool) {
	if len(b) > 0 && b[0] == '(' {
		bound.exclusive = true
		b = b[1:]
	}
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	if len(b) == 0 {
		return bound, true
	}
	if bound.score, ok = smallInteger(b); ok {
		return bound, true
	}
	f, failed := parseDouble(bytes.TrimLeft(b, " \t\n\v\f\r"))
	bound.score = f
	return bound, !failed && !math.IsNaN(f)
}

// below says whether a score is before a range that begins at the bound.
func (b scoreBound) below(score float64) bool {
	return score < b.score || b.exclusive && score == b.score
}

// above says whether a score is behind a range that ends at the bound.
func (b scoreBound) above(score float64) bool {
	return score > b.score || b.exclusive && score == b.score
}

// lexBound is one end of a range of members.
type lexBound struct {
	member    []byte
	exclusive bool
	infinite  int // -1 before all members, 1 behind all
}

// parseLexBound reads -, +, or a member behind [ or (.
func parseLexBound(b []byte) (bound lexBound, ok bool) {
	if len(b) == 0 {
		return bound, false
	}
	switch rest := b[1:]; b[0] {
	case '-':
		bound.infinite = -1
		return bound, len(rest) == 0 || rest[0] == 0
	case '+':
		bound.infinite = 1
		return bound, len(rest) == 0 || rest[0] == 0
	case '[', '(':
		bound.member, bound.exclusive = rest, b[0] == '('
		return bound, true
	}
	return bound, false
}

// compare is that of a member with the bound.
func (b *lexBound) compare(member []byte) int {
	if b.infinite != 0 {
		return -b.infinite
	}
	return bytes.Compare(member, b.member)
}

func (b *lexBound) below(member []byte) bool {
	n := b.compare(member)
	return n < 0 || b.exclusive && n == 0
}

func (b *lexBound) above(member []byte) bool {
	n := b.compare(member)
	return n > 0 || b.exclusive && n == 0
}

// zaddCall is the options of ZADD.
type zaddCall struct {
	nx, xx, gt, lt, ch, incr bool
	// pairs are scores and members in turn.
	pairs [][]byte
}

// parseZadd reads what follows the key; that the scores are some is checked, too.
func parseZadd(args [][]byte) (call zaddCall, fault resp.Error) {
	options := []struct {
		word string
		on   *bool
	}{
		{"nx", &call.nx}, {"xx", &call.xx}, {"gt", &call.gt}, {"lt", &call.lt}, {"ch", &call.ch}, {"incr", &call.incr},
	}
next:
	for len(args) > 0 {
		for _, o := range options {
			if equalFold(args[0], o.word) {
				*o.on = true
				args = args[1:]
				continue next
			}
		}
		break
	}
	call.pairs = args
	switch {
	case len(args) == 0 || len(args)%2 != 0:
		return call, resp.ErrSyntax
	case call.nx && call.xx:
		return call, "ERR XX and NX options at the same time are not compatible"
	case call.nx && (call.gt || call.lt) || call.gt && call.lt:
		return call, "ERR GT, LT, and/or NX options at the same time are not compatible"
	case call.incr && len(args) > 2:
		return call, "ERR INCR option supports a single increment-element pair"
	}
	for i := 0; i < len(args); i += 2 {
		if _, ok := parseScore(args[i]); !ok {
			return call, resp.ErrNotFloat
		}
	}
	return call, ""
}
