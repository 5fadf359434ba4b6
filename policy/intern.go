package policy

import "strings"

// interned has the limits of the entries of a [Builder]. Entries whose limits have the same text
// share one [Limits], because many keys have few different limits.
type interned map[internedKey]*internedLimits

// internedKey identifies limits by their text and unit of time.
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

// add returns the limits to use in place of l, and the additional memory in bytes that they take.
// If l is nil, it returns nil and 0.
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

// drop notes that an entry no longer has l, and returns the memory in bytes that this frees. l may
// be nil.
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

// limitsBytes estimates the memory of l and of its key, in bytes.
func limitsBytes(l *Limits) int64 {
	bytes := 130
	for _, t := range l.Text {
		bytes += 210 + 2*len(t)
	}
	return int64(bytes)
}
