package sortedsets

import (
	"bytes"
	"math"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
)

// scoreBound is one end of a range of scores. exclusive says that the score itself is not in the
// range.
type scoreBound struct {
	score     float64
	exclusive bool
}

// parseScoreBound parses b as a score or, for an exclusive bound, as "(" and a score. As in Redis,
// the text is parsed less strictly than a score of ZADD: leading space is allowed, an empty text is
// 0, too large a number is infinite, and a NUL ends the number.
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

// below reports whether score is before a range that begins at b.
func (b scoreBound) below(score float64) bool {
	return score < b.score || b.exclusive && score == b.score
}

// above reports whether score is after a range that ends at b.
func (b scoreBound) above(score float64) bool {
	return score > b.score || b.exclusive && score == b.score
}

// lexBound is one end of a range of members in lexicographical order. exclusive says that the
// member itself is not in the range.
type lexBound struct {
	member    []byte
	exclusive bool
	infinite  int // -1 if the end is before all members, 1 if it is after all members, and otherwise 0
}

// parseLexBound parses b as "-", as "+", as "[" and a member, or as "(" and a member, which is an
// exclusive bound.
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

// compare returns a negative number if member is before b, a positive number if it is after b, and
// 0 if it equals b.member.
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

// zaddCall has the parsed arguments of ZADD.
type zaddCall struct {
	nx, xx, gt, lt, ch, incr bool
	// pairs has alternating scores and members.
	pairs [][]byte
}

// parseZadd parses args, the arguments of ZADD after the key, and checks that the scores are
// numbers. fault is "" on success.
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
