package script

import (
	"strconv"
	"strings"
)

// matcher compares the replies on one connection with patterns.
type matcher struct {
	proto int
	// bound receives the values that patterns bind with `as`. It also gets values of a pattern that
	// matches only a part of the reply.
	bound map[string]string
}

// matches reports whether v matches the pattern want, and binds the value if want has a name.
func (m *matcher) matches(want *pattern, v Value) bool {
	if !m.matchesBare(want, v) {
		return false
	}
	if want.name != "" {
		m.bind(want, v)
	}
	return true
}

func (m *matcher) bind(want *pattern, v Value) {
	text := v.Text
	switch {
	case v.Type == ':':
		text = strconv.FormatInt(v.Int, 10)
	case v.Type == '=':
		text = text[len("txt:"):]
	}
	if want.re != nil && want.re.NumSubexp() > 0 {
		text = want.re.FindStringSubmatch(text)[1]
	}
	m.bound[want.name] = text
}

func (m *matcher) matchesBare(want *pattern, v Value) bool {
	resp3 := m.proto == 3
	switch want.kind {
	case wantAny:
		return true
	case wantClosed:
		return false
	case wantInt:
		return v.Type == ':' && want.low <= v.Int && v.Int <= want.high
	case wantBulk:
		return v.Type == '$' && !v.Null && want.says(v.Text)
	case wantStatus:
		return v.Type == '+' && want.says(v.Text)
	case wantError:
		return v.Type == '-' && want.says(v.Text)
	case wantVerbatim:
		return m.matchesVerbatim(want, v)
	case wantNull, wantNullArray:
		if resp3 {
			return v.Type == '_'
		}
		return v.Null && v.Type == either(want.kind == wantNullArray, '*', '$')
	case wantDouble:
		return v.Type == either(resp3, ',', '$') && !v.Null && v.Text == want.text
	case wantBool:
		if resp3 {
			return v.Type == '#' && v.Text == want.text
		}
		return v.Type == ':' && v.Int == int64(either(want.text == "t", 1, 0))
	case wantArray:
		return v.Type == '*' && !v.Null && m.inOrder(want, v.Elems)
	case wantAnyOrder:
		return v.Type == '*' && !v.Null && m.anyOrder(want, v.Elems)
	case wantSet:
		return v.Type == either(resp3, '~', '*') && !v.Null && m.anyOrder(want, v.Elems)
	case wantMap:
		return v.Type == either(resp3, '%', '*') && !v.Null && m.matchesMap(want, v.Elems)
	case wantPush:
		return v.Type == either(resp3, '>', '*') && m.inOrder(want, v.Elems)
	}
	return false
}

func either(condition bool, a, b byte) byte {
	if condition {
		return a
	}
	return b
}

// says reports whether text matches the text or the regular expression of p.
func (p *pattern) says(text string) bool {
	if p.re != nil {
		return p.re.MatchString(text)
	}
	return text == p.text
}

func (m *matcher) matchesVerbatim(want *pattern, v Value) bool {
	if m.proto != 3 {
		return v.Type == '$' && !v.Null && want.says(v.Text)
	}
	text, ok := strings.CutPrefix(v.Text, want.format+":")
	return v.Type == '=' && ok && want.says(text)
}

func (m *matcher) inOrder(want *pattern, got []Value) bool {
	if len(got) < len(want.elems) || len(got) > len(want.elems) && !want.open {
		return false
	}
	for i := range want.elems {
		if !m.matches(&want.elems[i], got[i]) {
			return false
		}
	}
	return true
}

// anyOrder assigns to each pattern in want the first matching element of got that no other pattern
// has. It returns false if one has no element, or if elements are left and want is not open. It
// does not try other assignments.
func (m *matcher) anyOrder(want *pattern, got []Value) bool {
	if len(got) < len(want.elems) || len(got) > len(want.elems) && !want.open {
		return false
	}
	taken := make([]bool, len(got))
	for i := range want.elems {
		found := false
		for k := range got {
			if !taken[k] && m.matches(&want.elems[i], got[k]) {
				taken[k], found = true, true
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// matchesMap compares the pairs in order or, if want is open, searches for each pair of want in
// got.
func (m *matcher) matchesMap(want *pattern, got []Value) bool {
	if !want.open {
		return m.inOrder(want, got)
	}
	for i := 0; i+1 < len(want.elems); i += 2 {
		found := false
		for k := 0; k+1 < len(got) && !found; k += 2 {
			found = m.matches(&want.elems[i], got[k]) && m.matches(&want.elems[i+1], got[k+1])
		}
		if !found {
			return false
		}
	}
	return true
}
