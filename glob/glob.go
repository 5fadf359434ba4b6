// Package glob matches names against the glob patterns of Redis with bounded cost.
package glob

import "math"

// MaxPattern bounds the bytes of an accepted pattern: a match costs at most the product of both
// lengths.
const MaxPattern = 1 << 10

// Match reports whether s matches the glob pattern as in Redis: `*`, `?`, `[a-z]`, `[^a]`, and a
// backslash before a literal character.
//
// It is a loop that backtracks to the last star only, so that a pattern with many stars costs a
// product of lengths and no stack (the class of CVE-2022-36021 and CVE-2024-31228). The part after
// the last star is compared only with the end of s.
func Match(pattern, s []byte) bool {
	steps := Unlimited
	return MatchWithin(pattern, s, &steps)
}

// MatchWithin is Match with a budget, in comparisons of one character. The result has no meaning if
// the budget was used up.
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
			if p == last { // the rest can only match at the end
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

// lastStar returns the index of the last '*' in pattern[p:] and the number of characters that
// the rest of the pattern matches.
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

// InnerLength returns how many characters the parts of pattern between two stars match together. A
// match costs at most that many comparisons for each character of a name, and a few more.
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

// matchOne matches c against the first element of pattern, which is not a star, and returns the
// length of that element.
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

// matchClass matches c against the bracket expression at the beginning of pattern. As in Redis, an
// unclosed one ends with the pattern, and a range may be reversed.
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
		i++ // the closing bracket
	}
	return i, match != not
}

// Unlimited is a budget of [MatchWithin] that is never used up.
const Unlimited = math.MaxInt
