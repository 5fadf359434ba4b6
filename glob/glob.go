// Package glob matches names against the glob patterns of Redis with bounded cost.
package glob

import "math"

// MaxPattern is the maximum length, in bytes, of a pattern that commands accept. It bounds the cost
// of a match, which is at most the product of the lengths of the pattern and the name.
const MaxPattern = 1 << 10

// Match reports whether s matches the glob pattern as in Redis: with `*`, `?`, `[a-z]`, `[^a]`, and
// a backslash before a literal character.
//
// Match is a loop that backtracks only to the last star that it has passed. So even a pattern with
// many stars costs at most the product of the lengths of pattern and s, and no stack.
// CVE-2022-36021 and CVE-2024-31228 are about matchers without these bounds. The part of the
// pattern after its last star is compared only with the end of s.
func Match(pattern, s []byte) bool {
	steps := Unlimited
	return MatchWithin(pattern, s, &steps)
}

// MatchWithin does what [Match] does within a budget. *steps is the maximum number of comparisons
// of one character; MatchWithin subtracts the number of those that it has made. If *steps is 0 or
// less afterwards, the result has no meaning.
func MatchWithin(pattern, s []byte, steps *int) bool {
	p, i := 0, 0
	star, mark := -1, 0
	last, tail := -1, 0
	for i < len(s) {
		if *steps--; *steps <= 0 {
			return false
		}
		if p < len(pattern) && pattern[p] == '*' {
			if star < 0 {
				last, tail = lastStar(pattern, p)
			}
			star, mark = p, i
			if p == last { // the rest of the pattern can only match at the end
				if mark = len(s) - tail; mark < i {
					return false
				}
				i = mark
			}
			p++
			continue
		}
		if width, ok := matchOne(pattern[p:], s[i]); ok {
			p += width
			i++
			continue
		}
		if star < 0 || star == last {
			return false
		}
		mark++
		p, i = star+1, mark
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// lastStar returns last, the index in pattern of the last '*', and tail, the number of characters
// that the rest of the pattern matches. There must be a '*' at p or after it.
func lastStar(pattern []byte, p int) (last, tail int) {
	for p < len(pattern) {
		if pattern[p] == '*' {
			last, tail = p, 0
			p++
			continue
		}
		width, _ := matchOne(pattern[p:], 0)
		p += width
		tail++
	}
	return last, tail
}

// InnerLength returns the number of characters that the parts of pattern between its first and its
// last star match together. For each character of a name, a match makes at most a few more
// comparisons than that.
func InnerLength(pattern []byte) (inner int) {
	since, open := 0, false
	for p := 0; p < len(pattern); {
		if pattern[p] == '*' {
			if open {
				inner += since
			}
			since, open = 0, true
			p++
			continue
		}
		width, _ := matchOne(pattern[p:], 0)
		p += width
		since++
	}
	return inner
}

// matchOne reports in ok whether c matches the first element of pattern, which must not be a star.
// width is the length of that element in bytes; 0 if pattern is empty.
func matchOne(pattern []byte, c byte) (width int, ok bool) {
	if len(pattern) == 0 {
		return 0, false
	}
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		return matchClass(pattern, c)
	case '\\':
		if len(pattern) > 1 {
			return 2, pattern[1] == c
		}
	}
	return 1, pattern[0] == c
}

// matchClass reports in ok whether c matches the bracket expression at the beginning of pattern.
// width is the length of the expression in bytes. As in Redis, an unclosed expression ends with the
// pattern, and the ends of a range may be in either order.
func matchClass(pattern []byte, c byte) (width int, ok bool) {
	i := 1
	not := i < len(pattern) && pattern[i] == '^'
	if not {
		i++
	}
	match := false
	for ; i < len(pattern) && pattern[i] != ']'; i++ {
		switch {
		case pattern[i] == '\\' && i+1 < len(pattern):
			i++
			match = match || pattern[i] == c
		case i+2 < len(pattern) && pattern[i+1] == '-':
			from, to := pattern[i], pattern[i+2]
			if from > to {
				from, to = to, from
			}
			match = match || (from <= c && c <= to)
			i += 2
		default:
			match = match || pattern[i] == c
		}
	}
	if i < len(pattern) {
		i++ // skips the closing bracket
	}
	return i, match != not
}

// Unlimited is a budget for [MatchWithin] that is never used up.
const Unlimited = math.MaxInt
