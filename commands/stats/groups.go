package stats

import (
	"hash/maphash"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// NewGroups returns counts of no call.
func NewGroups(o GroupOptions) *Groups {
	g := &Groups{delimiter: o.Delimiter, most: o.Max, seed: maphash.MakeSeed(), waiting: make(map[uint64]int64)}
	g.SetNear(o.Near)
	return g
}

// SetNear changes from which percentage of a limit in use an allowed call is near it.
func (g *Groups) SetNear(percent int) {
	if percent <= 0 {
		percent = 80
	}
	g.near.Store(int64(percent))
}

// label returns the name of a group as text that is safe to show, and that no other group and
// none of the fixed names has.
func label(name string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == '"' || r == '\\' }
	if name != "" && name != OtherGroups && name != NoGroup && utf8.ValidString(name) && strings.IndexFunc(name, odd) < 0 {
		return name
	}
	return strconv.Quote(name)
}

// see notes calls of a group without a count, and returns its number: that of all others until
// there were enough.
func (g *Groups) see(l *GroupLane, name []byte, hash uint64, calls int64) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(l.names) < len(g.names) { // others have named them
		l.learn(g.names[len(l.names)])
	}
	if id, ok := l.find(name, hash); ok {
		return id
	}
	if len(g.names) >= g.most {
		return otherGroup
	}
	if g.waiting[hash] += calls; g.waiting[hash] < namedAfter {
		if len(g.waiting) > maxWaiting {
			clear(g.waiting)
		}
		return otherGroup
	}
	delete(g.waiting, hash)
	g.names = append(g.names, string(name))
	l.learn(g.names[len(g.names)-1])
	g.named.Store(int32(len(g.names)))
	return firstNamed + len(l.names) - 1
}

// Snapshot returns the groups that were called, those with a name first.
func (g *Groups) Snapshot() []GroupCount {
	g.mu.Lock()
	defer g.mu.Unlock()
	sums := make([]GroupCount, firstNamed+len(g.names))
	for _, l := range g.lanes {
		l.addTo(sums)
	}
	named := make([]GroupCount, 0, len(sums))
	for i, n := range sums[firstNamed:] {
		if n.Name, n.Label = g.names[i], label(g.names[i]); n.Calls > 0 {
			named = append(named, n)
		}
	}
	sums[noGroup].Name, sums[otherGroup].Name = NoGroup, OtherGroups
	for _, n := range []GroupCount{sums[noGroup], sums[otherGroup]} {
		if n.Label = n.Name; n.Calls > 0 {
			named = append(named, n)
		}
	}
	return named
}

// Retries returns how long denied callers were told to wait.
func (g *Groups) Retries() (sum Retries) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.lanes {
		l.mu.Lock()
		for i, n := range l.retries.Counts {
			sum.Counts[i] += n
		}
		sum.Sum += l.retries.Sum
		l.mu.Unlock()
	}
	return sum
}
