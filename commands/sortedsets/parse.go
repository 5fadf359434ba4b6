package sortedsets

import (
	"bytes"
	"math"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
)

// scoreBound is one end of a range of scores.
type scoreBound struct {
	score     float64
	exclusive bool
}

// parseScoreBound parses a score, or ( and a score that is not in the range. Redis is less strict
// here than for scores: leading space is allowed, an empty text is 0, too large a number is
// infinite, and a zero byte ends the number.
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
	if bound.score, ok = arg.SmallInteger(b); ok {
		return bound, true
	}
	f, failed := arg.Double(bytes.TrimLeft(b, " \t\n\v\f\r"))
	bound.score = f
	return bound, !failed && !math.IsNaN(f)
}

// below reports whether a score is before a range that begins at the bound.
func (b scoreBound) below(score float64) bool {
	return score < b.score || b.exclusive && score == b.score
}

// above reports whether a score is after a range that ends at the bound.
func (b scoreBound) above(score float64) bool {
	return score > b.score || b.exclusive && score == b.score
}

// lexBound is one end of a range of members.
type lexBound struct {
	member    []byte
	exclusive bool
	infinite  int // -1 before all members, 1 after all
}

// parseLexBound parses -, +, or a member after [ or (.
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

// compare compares a member with the bound.
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
	// pairs has scores and members alternately.
	pairs [][]byte
}

// parseZadd parses the arguments after the key, and checks that the scores are numbers.
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
			if command.EqualFold(args[0], o.word) {
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
		if _, ok := arg.Score(args[i]); !ok {
			return call, resp.ErrNotFloat
		}
	}
	return call, ""
}
