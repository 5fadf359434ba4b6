package concurrency

import (
	"bytes"
	"slices"

	"github.com/cellserver/cellserver/limit"
)

// List calls f for members that hold a lease at now, with the end of the lease and their places, in
// the order of their names by [bytes.Compare]. It begins after the name after, or with the first
// name if begin is true. It looks at no more than most stored members, and skips those whose leases
// have expired, so f may be called fewer times than most, or not at all, even if there are more
// members. most must be positive.
//
// last is the name of the last member that List has looked at, or after if there was none. more says
// that there are stored members after last. A caller that continues with last, until more is false,
// gets each member that holds a lease all the time exactly once, whatever other calls change
// meanwhile. member and last are parts of value, or after: they are valid until value changes.
//
// value must pass [Check] under mode. If mode is neither Leases nor Places, List calls nothing. List
// allocates nothing. It takes O(log n + most) steps for a large set.
func List(mode Mode, value []byte, now limit.Instant, after []byte, begin bool, most int, f func(member []byte, until limit.Instant, places int64)) (last []byte, more bool) {
	switch {
	case !known(mode):
		return after, false
	case isList(value):
		return list(value).walk(now, after, begin, most, f)
	}
	x := index(value)
	w := walk{x: x, last: after, open: begin, rest: most, visit: func(r ref) {
		if until := x.until(r); until > now {
			f(x.name(r), until, x.places(r))
		}
	}}
	more = !w.below(byName.root(x))
	return w.last, more
}

// walk goes through the members of an index in the order of their names.
type walk struct {
	x    index
	last []byte // name of the member that was visited last
	open bool   // all members that follow are after last, so names need not be compared
	rest int    // number of members that may still be visited
	// visit is called for each member, with its node.
	visit func(r ref)
}

// below visits the members after w.last in the subtree by name at top. It returns false if there
// are more of them than w.rest.
func (w *walk) below(top ref) bool {
	if top == none {
		return true
	}
	if w.open || bytes.Compare(w.x.name(top), w.last) > 0 {
		if !w.below(byName.left(w.x, top)) || w.rest <= 0 {
			return false
		}
		w.visit(top)
		w.last, w.open = w.x.name(top), true
		w.rest--
	}
	return w.below(byName.right(w.x, top))
}

// walk does what List does.
func (l list) walk(now limit.Instant, after []byte, begin bool, most int, f func(member []byte, until limit.Instant, places int64)) (last []byte, more bool) {
	header := l.header()
	name := func(at int) []byte {
		_, end := l.entry(at, header)
		return l[at+header : end]
	}
	var room [listMost]int
	entries := room[:0] // the entries begin at the start of room
	for at := listHeader; at < len(l); {
		if begin || bytes.Compare(name(at), after) > 0 {
			entries = append(entries, at)
		}
		_, at = l.entry(at, header)
	}
	slices.SortFunc(entries, func(a, b int) int { return bytes.Compare(name(a), name(b)) })
	if len(entries) > most {
		entries, more = entries[:max(0, most)], true
	}
	last = after
	for _, at := range entries {
		last = name(at)
		if until, _ := l.entry(at, header); until > now {
			f(last, until, l.places(at, header))
		}
	}
	return last, more
}
