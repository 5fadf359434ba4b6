package hotkeys

import (
	"github.com/cellserver/cellserver/stats"
)

// seenGroups has the records of one recorder about groups of keys since the latest take. Apart from
// the calls that lacked memory, it includes only the calls that are sampled for the tables.
type seenGroups struct {
	byName map[string]*seenGroup // the groups by name, at most maxSeenGroups
	// last is the group of the keys that begin with prefix. It is a cache, because most calls are
	// of the same group as the call before. none is the group of the keys without a delimiter; nil
	// until there is such a key.
	last, none *seenGroup
	prefix     []byte
}

// seenGroup has the statistics of one group. denied estimates the number of keys with denied calls, and
// refused counts the calls that lacked memory. kinds are its most frequent kinds of calls, found by
// the algorithm of Misra and Gries. If all calls have the same weight, the four counters keep each
// kind that makes up more than a fifth of the calls.
type seenGroup struct {
	name    string
	used    bool // whether the group has had calls since the latest take
	denied  stats.Sketch
	refused int64
	kinds   [4]seenKind
}

type seenKind struct {
	Detail
	count int64
}

// maxSeenGroups is the maximum number of groups that a recorder distinguishes. Further groups are
// counted together as stats.OtherGroups.
const maxSeenGroups = 256

// of returns the group of key, and marks it as used. The name of the group is the part of key
// before delimiter. of creates the group if necessary.
func (g *seenGroups) of(key []byte, delimiter string) *seenGroup {
	if n := len(g.prefix); n > 0 && len(key) >= n && string(key[:n]) == string(g.prefix) {
		g.last.used = true
		return g.last
	}
	name, fixed := stats.GroupOf(key, delimiter)
	var group *seenGroup
	switch {
	case fixed == stats.NoGroup && g.none != nil:
		group = g.none
	case fixed != "":
		group = g.byName[fixed]
	default:
		group = g.byName[string(name)]
	}
	if group == nil {
		group = g.enter(string(name) + fixed)
	}
	group.used = true
	switch fixed {
	case "":
		g.last, g.prefix = group, append(g.prefix[:0], key[:len(name)+len(delimiter)]...)
	case stats.NoGroup:
		g.none = group
	}
	return group
}

// enter returns the group called name, and creates it if necessary. If there are too many groups,
// it returns the group stats.OtherGroups.
func (g *seenGroups) enter(name string) *seenGroup {
	if g.byName == nil {
		g.byName = make(map[string]*seenGroup)
	}
	if len(g.byName) >= maxSeenGroups-1 {
		name = stats.OtherGroups
	}
	group := g.byName[name]
	if group == nil {
		group = &seenGroup{name: name}
		g.byName[name] = group
	}
	return group
}

// called adds weight to the counter for the kind of the call that is describes. If no counter has
// that kind and none is free, called subtracts weight from all counters instead.
func (g *seenGroup) called(is *Detail, weight int64) {
	free := -1
	for i := range g.kinds {
		k := &g.kinds[i]
		switch {
		case k.count == 0:
			free = i
		case k.sameLimit(is):
			k.count += weight
			return
		}
	}
	if free >= 0 {
		g.kinds[free] = seenKind{*is, weight}
		return
	}
	for i := range g.kinds {
		g.kinds[i].count = max(0, g.kinds[i].count-weight)
	}
}

// take calls f with each group that was used since the latest take, and then clears the group. It
// removes the other groups.
func (g *seenGroups) take(f func(*seenGroup)) {
	for name, group := range g.byName {
		if !group.used {
			delete(g.byName, name)
			continue
		}
		f(group)
		*group = seenGroup{name: name}
	}
	g.last, g.none, g.prefix = nil, nil, g.prefix[:0]
}
