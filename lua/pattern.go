package lua

import (
	"errors"
)

// A pattern of Lua 5.1 is matched by walking its text, as Lua does: compiling it
// first would pay only for those used often. Every step is paid from a budget.

const (
	maxCaptures = 32
	// maxPatternDepth bounds the recursion; Lua's own bound is its C stack.
	maxPatternDepth = 20000

	captureOpen     = -1
	capturePosition = -2
)

var (
	errPatternEnds     = errors.New("malformed pattern (ends with '%')")
	errPatternBracket  = errors.New("malformed pattern (missing ']')")
	errPatternFrontier = errors.New("missing '[' after '%f' in pattern")
	errPatternBalance  = errors.New("unbalanced pattern")
	errPatternCapture  = errors.New("invalid pattern capture")
	errPatternIndex    = errors.New("invalid capture index")
	errPatternOpen     = errors.New("unfinished capture")
	errPatternMany     = errors.New("too many captures")
	errPatternComplex  = errors.New("pattern too complex")
	errPatternBudget   = errors.New(reasonPatterns)
)

type capture struct {
	start, length int
}

// matcher matches one pattern against places of one subject.
type matcher struct {
	subject, pattern string
	level            int
	captures         [maxCaptures]capture
	depth            int
	// steps counts down; below zero the match fails with errPatternBudget.
	steps int64
	// poll is asked now and then, and ends the match if it says so.
	poll func() bool
	err  error
}

// pollEvery is how many steps pass between two questions: well below 1 ms.
const pollEvery = 1 << 14

// pay takes n steps and says whether there were any left.
func (m *matcher) pay(n int) bool {
	before := m.steps
	m.steps -= int64(n)
	if m.steps < 0 {
		m.fail(errPatternBudget)
		return false
	}
	if before/pollEvery != m.steps/pollEvery && m.poll != nil && m.poll() {
		m.fail(errPatternBudget)
		return false
	}
	return true
}

func (m *matcher) fail(err error) int {
	if m.err == nil {
		m.err = err
	}
	return -1
}

// at matches the pattern from p with the subject from s and returns the end of
// the match, or -1.
func (m *matcher) at(s, p int) int {
	if m.depth == maxPatternDepth {
		return m.fail(errPatternComplex)
	}
	m.depth++
	end := m.walk(s, p)
	m.depth--
	return end
}

func (m *matcher) walk(s, p int) int {
	for p < len(m.pattern) {
		if !m.pay(1) {
			return -1
		}
		switch c := m.pattern[p]; {
		case c == '(':
			if p+1 < len(m.pattern) && m.pattern[p+1] == ')' {
				return m.open(s, p+2, capturePosition)
			}
			return m.open(s, p+1, captureOpen)
		case c == ')':
			return m.shut(s, p+1)
		case c == '%' && p+1 < len(m.pattern) && m.pattern[p+1] == 'b':
			s = m.balance(s, p+2)
			if s < 0 {
				return -1
			}
			p += 4
			continue
		case c == '%' && p+1 < len(m.pattern) && m.pattern[p+1] == 'f':
			var ok bool
			if p, ok = m.frontier(s, p+2); !ok {
				return -1
			}
			continue
		case c == '%' && p+1 < len(m.pattern) && isDigit(m.pattern[p+1]):
			s = m.back(s, m.pattern[p+1])
			if s < 0 {
				return -1
			}
			p += 2
			continue
		case c == '$' && p+1 == len(m.pattern):
			if s == len(m.subject) {
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

// item matches a single-character class with its suffix. Either the match goes on
// behind it, or it is done with result.
func (m *matcher) item(s, p int) (nextS, nextP, result int, done bool) {
	end := m.classEnd(p)
	if end < 0 {
		return 0, 0, -1, true
	}
	suffix := byte(0)
	if end < len(m.pattern) {
		suffix = m.pattern[end]
	}
	switch suffix {
	case '?':
		if s < len(m.subject) && m.single(s, p, end) {
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
	if s >= len(m.subject) || !m.single(s, p, end) {
		return 0, 0, -1, true
	}
	return s + 1, end, 0, false
}

// classEnd returns the place behind the single-character class at p.
func (m *matcher) classEnd(p int) int {
	c := m.pattern[p]
	p++
	switch c {
	case '%':
		if p >= len(m.pattern) {
			return m.fail(errPatternEnds)
		}
		return p + 1
	case '[':
		if p < len(m.pattern) && m.pattern[p] == '^' {
			p++
		}
		// The first character counts, even "]".
		for first := true; ; first = false {
			if p >= len(m.pattern) {
				return m.fail(errPatternBracket)
			}
			c := m.pattern[p]
			if c == ']' && !first {
				return p + 1
			}
			p++
			if c == '%' && p < len(m.pattern) {
				p++
			}
		}
	}
	return p
}

func (m *matcher) single(s, p, end int) bool {
	c := m.subject[s]
	switch m.pattern[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.pattern[p+1])
	case '[':
		return m.inSet(c, p, end-1)
	}
	return m.pattern[p] == c
}

// inSet looks c up in the set from the "[" at p to the "]" at last. A set can be
// as long as a pattern, so it is paid for.
func (m *matcher) inSet(c byte, p, last int) bool {
	m.pay((last - p) / 8)
	in := true
	p++
	if m.pattern[p] == '^' {
		in = false
		p++
	}
	for ; p < last; p++ {
		switch {
		case m.pattern[p] == '%':
			p++
			if inClass(c, m.pattern[p]) {
				return in
			}
		case p+2 < last && m.pattern[p+1] == '-':
			if m.pattern[p] <= c && c <= m.pattern[p+2] {
				return in
			}
			p += 2
		case m.pattern[p] == c:
			return in
		}
	}
	return !in
}

func (m *matcher) expand(s, p, end, least int) int {
	n := 0
	for s+n < len(m.subject) && m.single(s+n, p, end) {
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

func (m *matcher) lazy(s, p, end int) int {
	for {
		if !m.pay(1) {
			return -1
		}
		if result := m.at(s, end+1); result >= 0 || m.err != nil {
			return result
		}
		if s >= len(m.subject) || !m.single(s, p, end) {
			return -1
		}
		s++
	}
}

func (m *matcher) open(s, p, what int) int {
	if m.level >= maxCaptures {
		return m.fail(errPatternMany)
	}
	m.captures[m.level] = capture{s, what}
	m.level++
	result := m.at(s, p)
	if result < 0 {
		m.level--
	}
	return result
}

func (m *matcher) shut(s, p int) int {
	for i := m.level - 1; i >= 0; i-- {
		if m.captures[i].length == captureOpen {
			m.captures[i].length = s - m.captures[i].start
			result := m.at(s, p)
			if result < 0 {
				m.captures[i].length = captureOpen
			}
			return result
		}
	}
	return m.fail(errPatternCapture)
}

func (m *matcher) balance(s, p int) int {
	if p+1 >= len(m.pattern) {
		return m.fail(errPatternBalance)
	}
	if s >= len(m.subject) || m.subject[s] != m.pattern[p] {
		return -1
	}
	begin, end, depth := m.pattern[p], m.pattern[p+1], 1
	for s++; s < len(m.subject); s++ {
		if !m.pay(1) {
			return -1
		}
		switch m.subject[s] {
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

func (m *matcher) frontier(s, p int) (int, bool) {
	if p >= len(m.pattern) || m.pattern[p] != '[' {
		m.fail(errPatternFrontier)
		return 0, false
	}
	end := m.classEnd(p)
	if end < 0 {
		return 0, false
	}
	var before, now byte
	if s > 0 {
		before = m.subject[s-1]
	}
	if s < len(m.subject) {
		now = m.subject[s]
	}
	return end, !m.inSet(before, p, end-1) && m.inSet(now, p, end-1)
}

func (m *matcher) back(s int, digit byte) int {
	i := int(digit) - '1'
	if i < 0 || i >= m.level || m.captures[i].length == captureOpen {
		return m.fail(errPatternIndex)
	}
	c := m.captures[i]
	if c.length == capturePosition {
		// Lua compares with a length of -2, which never fits.
		return -1
	}
	if !m.pay(c.length / 8) {
		return -1
	}
	if len(m.subject)-s >= c.length && m.subject[s:s+c.length] == m.subject[c.start:c.start+c.length] {
		return s + c.length
	}
	return -1
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// inClass is the class of a letter after "%"; other characters are themselves.
func inClass(c, class byte) bool {
	var in bool
	switch class | 0x20 {
	case 'a':
		in = isLetter(c)
	case 'c':
		in = c < 32 || c == 127
	case 'd':
		in = isDigit(c)
	case 'l':
		in = 'a' <= c && c <= 'z'
	case 'p':
		in = c > 32 && c < 127 && !isLetter(c) && !isDigit(c)
	case 's':
		in = isSpace(c)
	case 'u':
		in = 'A' <= c && c <= 'Z'
	case 'w':
		in = isLetter(c) || isDigit(c)
	case 'x':
		in = isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f'
	case 'z':
		in = c == 0
	default:
		return class == c
	}
	if !isLetter(class) {
		return class == c
	}
	if class&0x20 == 0 {
		return !in
	}
	return in
}
