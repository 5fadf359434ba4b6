package pattern

import (
	"errors"

	"github.com/cellserver/cellserver/lua/value"
)

const (
	maxCaptures = 32
	// maxDepth is the maximum depth of the recursion. In Lua the C stack bounds it.
	maxDepth = 20000

	// open is the length of a capture that has not ended. position is the length of a capture of an
	// index, as by "()", instead of a text.
	open     = -1
	position = -2
)

// ErrBudget is the error of a match that has used up its steps, or that Poll has ended.
var ErrBudget = errors.New("script spends too many steps on patterns")

// These are the errors for invalid patterns, with the texts of Lua.
var (
	errEnds     = errors.New("malformed pattern (ends with '%')")
	errBracket  = errors.New("malformed pattern (missing ']')")
	errFrontier = errors.New("missing '[' after '%f' in pattern")
	errBalance  = errors.New("unbalanced pattern")
	errCapture  = errors.New("invalid pattern capture")
	errIndex    = errors.New("invalid capture index")
	errOpen     = errors.New("unfinished capture")
	errMany     = errors.New("too many captures")
	errComplex  = errors.New("pattern too complex")
)

type capture struct {
	start, length int
}

// Matcher matches one pattern at any indices of one subject. It belongs to one goroutine.
type Matcher struct {
	Subject, Pattern string
	// Steps is the number of steps that are left. Match decrements it, and fails with ErrBudget
	// when it is below zero.
	Steps int64
	// Poll, unless it is nil, is called every few thousand steps. If it returns true, the match
	// fails with ErrBudget.
	Poll func() bool

	level    int
	captures [maxCaptures]capture
	depth    int
	err      error
}

// pollEvery is the number of steps between two calls of Poll, which take about 0.2 ms.
const pollEvery = 1 << 12

// pay takes n steps from the budget. It returns false, and the match fails, if the budget is used
// up or Poll ends the match.
func (m *Matcher) pay(n int) bool {
	before := m.Steps
	m.Steps -= int64(n)
	if m.Steps < 0 {
		m.fail(ErrBudget)
		return false
	}
	if before/pollEvery != m.Steps/pollEvery && m.Poll != nil && m.Poll() {
		m.fail(ErrBudget)
		return false
	}
	return true
}

func (m *Matcher) fail(err error) int {
	if m.err == nil {
		m.err = err
	}
	return -1
}

// Match matches the pattern from index p with the subject from index s. end is the index in the
// subject at which the match ends, or -1 if the pattern does not match. After an error, such as one
// in the pattern, the matcher must not be used again.
func (m *Matcher) Match(s, p int) (end int, err error) {
	m.level, m.depth = 0, 0
	end = m.at(s, p)
	return end, m.err
}

// Captures returns the number of captures of the last match.
func (m *Matcher) Captures() int { return m.level }

// Capture returns capture i, from 0 on, of the last match, which was the subject from start to end.
// If the capture is a text, place is 0. If it is an index of the subject, text is "" and place is
// the index counted from 1. If the pattern has no captures, capture 0 is the whole match. An error
// means that the capture does not exist or has not ended.
func (m *Matcher) Capture(i, start, end int) (text string, place int, err error) {
	if i >= m.level {
		if i != 0 {
			return "", 0, errIndex
		}
		return m.Subject[start:end], 0, nil
	}
	c := m.captures[i]
	switch c.length {
	case position:
		return "", c.start + 1, nil
	case open:
		return "", 0, errOpen
	}
	return m.Subject[c.start : c.start+c.length], 0, nil
}

// at matches the pattern from index p with the subject from index s, as a part of the same match.
// It returns the end of the match, or -1.
func (m *Matcher) at(s, p int) int {
	if m.depth == maxDepth {
		return m.fail(errComplex)
	}
	m.depth++
	end := m.walk(s, p)
	m.depth--
	return end
}

func (m *Matcher) walk(s, p int) int {
	for p < len(m.Pattern) {
		if !m.pay(1) {
			return -1
		}
		switch c := m.Pattern[p]; {
		case c == '(':
			if p+1 < len(m.Pattern) && m.Pattern[p+1] == ')' {
				return m.begin(s, p+2, position)
			}
			return m.begin(s, p+1, open)
		case c == ')':
			return m.finish(s, p+1)
		case c == '%' && p+1 < len(m.Pattern) && m.Pattern[p+1] == 'b':
			s = m.balance(s, p+2)
			if s < 0 {
				return -1
			}
			p += 4
			continue
		case c == '%' && p+1 < len(m.Pattern) && m.Pattern[p+1] == 'f':
			var ok bool
			if p, ok = m.frontier(s, p+2); !ok {
				return -1
			}
			continue
		case c == '%' && p+1 < len(m.Pattern) && value.IsDigit(m.Pattern[p+1]):
			s = m.back(s, m.Pattern[p+1])
			if s < 0 {
				return -1
			}
			p += 2
			continue
		case c == '$' && p+1 == len(m.Pattern):
			if s == len(m.Subject) {
				return s
			}
			return -1
		}
		var result int
		var done bool
		if s, p, result, done = m.item(s, p); done {
			return result
		}
	}
	return s
}

// item matches the single-character class at index p of the pattern, and the suffix of that class,
// against the subject from index s. If done is false, the match continues at nextS and nextP. If
// done is true, item has also matched the rest of the pattern, and the match ends with result.
func (m *Matcher) item(s, p int) (nextS, nextP, result int, done bool) {
	end := m.classEnd(p)
	if end < 0 {
		return 0, 0, -1, true
	}
	suffix := byte(0)
	if end < len(m.Pattern) {
		suffix = m.Pattern[end]
	}
	switch suffix {
	case '?':
		if s < len(m.Subject) && m.single(s, p, end) {
			if result := m.at(s+1, end+1); result >= 0 || m.err != nil {
				return 0, 0, result, true
			}
		}
		return s, end + 1, 0, false
	case '*':
		return 0, 0, m.expand(s, p, end, 0), true
	case '+':
		return 0, 0, m.expand(s, p, end, 1), true
	case '-':
		return 0, 0, m.lazy(s, p, end), true
	}
	if s >= len(m.Subject) || !m.single(s, p, end) {
		return 0, 0, -1, true
	}
	return s + 1, end, 0, false
}

// classEnd returns the index after the single-character class at p, or -1 if the class is
// malformed.
func (m *Matcher) classEnd(p int) int {
	c := m.Pattern[p]
	p++
	switch c {
	case '%':
		if p >= len(m.Pattern) {
			return m.fail(errEnds)
		}
		return p + 1
	case '[':
		if p < len(m.Pattern) && m.Pattern[p] == '^' {
			p++
		}
		// A "]" that is the first character is a member of the set.
		for first := true; ; first = false {
			if p >= len(m.Pattern) {
				return m.fail(errBracket)
			}
			c := m.Pattern[p]
			if c == ']' && !first {
				return p + 1
			}
			p++
			if c == '%' && p < len(m.Pattern) {
				p++
			}
		}
	}
	return p
}

func (m *Matcher) single(s, p, end int) bool {
	c := m.Subject[s]
	switch m.Pattern[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.Pattern[p+1])
	case '[':
		return m.inSet(c, p, end-1)
	}
	return m.Pattern[p] == c
}

// inSet reports whether the set from the "[" at p to the "]" at last contains c. A set can be as
// long as the pattern, so inSet counts its length against the budget.
func (m *Matcher) inSet(c byte, p, last int) bool {
	m.pay((last - p) / 8)
	in := true
	p++
	if m.Pattern[p] == '^' {
		in = false
		p++
	}
	for ; p < last; p++ {
		switch {
		case m.Pattern[p] == '%':
			p++
			if inClass(c, m.Pattern[p]) {
				return in
			}
		case p+2 < last && m.Pattern[p+1] == '-':
			if m.Pattern[p] <= c && c <= m.Pattern[p+2] {
				return in
			}
			p += 2
		case m.Pattern[p] == c:
			return in
		}
	}
	return !in
}

func (m *Matcher) expand(s, p, end, least int) int {
	n := 0
	for s+n < len(m.Subject) && m.single(s+n, p, end) {
		if !m.pay(1) {
			return -1
		}
		n++
	}
	for ; n >= least; n-- {
		if !m.pay(1) {
			return -1
		}
		if result := m.at(s+n, end+1); result >= 0 || m.err != nil {
			return result
		}
	}
	return -1
}

func (m *Matcher) lazy(s, p, end int) int {
	for {
		if !m.pay(1) {
			return -1
		}
		if result := m.at(s, end+1); result >= 0 || m.err != nil {
			return result
		}
		if s >= len(m.Subject) || !m.single(s, p, end) {
			return -1
		}
		s++
	}
}

func (m *Matcher) begin(s, p, what int) int {
	if m.level >= maxCaptures {
		return m.fail(errMany)
	}
	m.captures[m.level] = capture{s, what}
	m.level++
	result := m.at(s, p)
	if result < 0 {
		m.level--
	}
	return result
}

func (m *Matcher) finish(s, p int) int {
	for i := m.level - 1; i >= 0; i-- {
		if m.captures[i].length == open {
			m.captures[i].length = s - m.captures[i].start
			result := m.at(s, p)
			if result < 0 {
				m.captures[i].length = open
			}
			return result
		}
	}
	return m.fail(errCapture)
}

func (m *Matcher) balance(s, p int) int {
	if p+1 >= len(m.Pattern) {
		return m.fail(errBalance)
	}
	if s >= len(m.Subject) || m.Subject[s] != m.Pattern[p] {
		return -1
	}
	begin, end, depth := m.Pattern[p], m.Pattern[p+1], 1
	for s++; s < len(m.Subject); s++ {
		if !m.pay(1) {
			return -1
		}
		switch m.Subject[s] {
		case end:
			depth--
			if depth == 0 {
				return s + 1
			}
		case begin:
			depth++
		}
	}
	return -1
}

func (m *Matcher) frontier(s, p int) (int, bool) {
	if p >= len(m.Pattern) || m.Pattern[p] != '[' {
		m.fail(errFrontier)
		return 0, false
	}
	end := m.classEnd(p)
	if end < 0 {
		return 0, false
	}
	var before, now byte
	if s > 0 {
		before = m.Subject[s-1]
	}
	if s < len(m.Subject) {
		now = m.Subject[s]
	}
	return end, !m.inSet(before, p, end-1) && m.inSet(now, p, end-1)
}

func (m *Matcher) back(s int, digit byte) int {
	i := int(digit) - '1'
	if i < 0 || i >= m.level || m.captures[i].length == open {
		return m.fail(errIndex)
	}
	c := m.captures[i]
	if c.length == position {
		// A capture of a position matches no text. In Lua its length is -2.
		return -1
	}
	if !m.pay(c.length / 8) {
		return -1
	}
	if len(m.Subject)-s >= c.length && m.Subject[s:s+c.length] == m.Subject[c.start:c.start+c.length] {
		return s + c.length
	}
	return -1
}

// inClass reports whether c belongs to the class that "%" and class denote. If class is not the
// letter of a class, the class contains only that character.
func inClass(c, class byte) bool {
	var in bool
	switch class | 0x20 {
	case 'a':
		in = value.IsLetter(c)
	case 'c':
		in = c < 32 || c == 127
	case 'd':
		in = value.IsDigit(c)
	case 'l':
		in = 'a' <= c && c <= 'z'
	case 'p':
		in = c > 32 && c < 127 && !value.IsLetter(c) && !value.IsDigit(c)
	case 's':
		in = value.IsSpace(c)
	case 'u':
		in = 'A' <= c && c <= 'Z'
	case 'w':
		in = value.IsLetter(c) || value.IsDigit(c)
	case 'x':
		in = value.IsDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f'
	case 'z':
		in = c == 0
	default:
		return class == c
	}
	if !value.IsLetter(class) {
		return class == c
	}
	if class&0x20 == 0 {
		return !in
	}
	return in
}
