package policy

import "strings"

// interned are the limits that entries of a [Builder] have: one for those that are written
// alike, since many keys have few limits.
type interned map[internedKey]*internedLimits

// internedKey tells limits apart.
type internedKey struct {
	text   string
	millis bool
	bounds Bounds
}

// internedLimits are limits that n entries share.
type internedLimits struct {
	limits *Limits
	n      int
}

func keyOf(l *Limits) internedKey {
	return internedKey{strings.Join(l.Text, "\n"), l.Millis, l.bounds}
}

// add returns the limits to use in the place of l, and how much memory they need that was not
// counted yet. l may be nil.
func (m interned) add(l *Limits) (*Limits, int64) {
	if l == nil {
		return nil, 0
	}
	key := keyOf(l)
	if s := m[key]; s != nil {
		s.n++
		return s.limits, 0
	}
	m[key] = &internedLimits{limits: l, n: 1}
	return l, limitsBytes(l)
}

// drop says that an entry has l no longer, and returns the memory that this frees.
func (m interned) drop(l *Limits) int64 {
	if l == nil {
		return 0
	}
	key := keyOf(l)
	s := m[key]
	if s.n--; s.n > 0 {
		return 0
	}
	delete(m, key)
	return limitsBytes(l)
}

// limitsBytes estimates the memory of limits and of their key.
func limitsBytes(l *Limits) int64 {
	bytes := 130
	for _, t := range l.Text {
		bytes += 210 + 2*len(t)
	}
	return int64(bytes)
}
