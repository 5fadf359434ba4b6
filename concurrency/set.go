package concurrency

import "github.com/cellserver/cellserver/limit"

// set is a stored value: the members that hold or held a lease. Members are numbered from 0 in the
// order of their expiries; the order among equal expiries depends on the form. An empty set is that
// of an absent key.
//
// The first byte of a value tells its form. Numbers are little-endian, instants
// Unix nanoseconds.
type set []byte

// size returns the number of members, expired ones included.
func (s set) size() int {
	switch {
	case len(s) == 0:
		return 0
	case s[0] == formList:
		return list(s).size()
	}
	return index(s).size()
}

// expired returns the number of members whose leases are not live at now.
func (s set) expired(now limit.Instant) int {
	switch {
	case len(s) == 0:
		return 0
	case s[0] == formList:
		return list(s).expired(now)
	}
	return index(s).expired(now)
}

// expiry returns the i-th expiry, [limit.MinInstant] if there is none.
func (s set) expiry(i int) limit.Instant {
	switch {
	case i < 0 || i >= s.size():
		return limit.MinInstant
	case s[0] == formList:
		return list(s).expiry(i)
	}
	return index(s).expiry(i)
}

// find returns the expiry of member's lease, if it has one, live or not.
func (s set) find(member []byte) (limit.Instant, bool) {
	switch {
	case len(s) == 0:
		return limit.MinInstant, false
	case s[0] == formList:
		return list(s).find(member)
	}
	ref := index(s).find(member)
	if ref == none {
		return limit.MinInstant, false
	}
	return index(s).until(ref), true
}

// Describe calls emit with the fields that RL.INFO shows of a stored value: used, the number of
// members that hold a lease at now; members, the number of all stored members; and reset-ms, the
// time until the last lease expires. value must pass [Check].
func Describe(mode Mode, value []byte, now limit.Instant, emit func(field string, value int64)) (used int64) {
	if mode != Leases {
		return 0
	}
	s := set(value)
	used = int64(s.size() - s.expired(now))
	emit("used", used)
	emit("members", int64(s.size()))
	emit("reset-ms", limit.MillisUp(after(s.expiry(s.size()-1), now)))
	return used
}
