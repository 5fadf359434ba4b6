package concurrency

import "github.com/cellserver/cellserver/limit"

// set is a stored value: the members that hold or held a lease. Members are numbered from 0 in the
// order of their expiries; the order among equal expiries depends on the form. An empty slice is
// the set of an absent key.
//
// The first byte of a value identifies its form. Numbers are little-endian, and instants are Unix
// nanoseconds.
type set []byte

// size returns the number of members, including those whose leases have expired.
func (s set) size() int {
	switch {
	case len(s) == 0:
		return 0
	case isList(s):
		return list(s).size()
	}
	return index(s).size()
}

// expired returns the number of members whose leases have expired at now.
func (s set) expired(now limit.Instant) int {
	switch {
	case len(s) == 0:
		return 0
	case isList(s):
		return list(s).expired(now)
	}
	return index(s).expired(now)
}

// expiry returns the expiry of member i, or [limit.MinInstant] if there is no such member.
func (s set) expiry(i int) limit.Instant {
	switch {
	case i < 0 || i >= s.size():
		return limit.MinInstant
	case isList(s):
		return list(s).expiry(i)
	}
	return index(s).expiry(i)
}

// find returns the expiry of the lease of member, which may have passed. It returns false if the
// set does not have member.
func (s set) find(member []byte) (limit.Instant, bool) {
	switch {
	case len(s) == 0:
		return limit.MinInstant, false
	case isList(s):
		return list(s).find(member)
	}
	ref := index(s).find(member)
	if ref == none {
		return limit.MinInstant, false
	}
	return index(s).until(ref), true
}

// freed returns the first instant at which so many places have become free, because leases of
// other members than member have expired after now. These members must have that many places.
func (s set) freed(places int64, member []byte, now limit.Instant) limit.Instant {
	if isList(s) {
		return list(s).freed(places, member, now)
	}
	return index(s).freed(places, member, now)
}

// known reports whether mode is the mode of a set.
func known(mode Mode) bool { return mode == Leases || mode == Places }

// inUse returns the number of members that hold a lease at now, and the number of their places.
// value must pass [Check] under mode. If mode is neither Leases nor Places, both are 0.
func inUse(mode Mode, value []byte, now limit.Instant) (members int, places int64) {
	if !known(mode) {
		return 0, 0
	}
	s := set(value)
	members = s.size() - s.expired(now)
	switch {
	case mode == Leases:
		return members, int64(members)
	case isList(s):
		return members, list(s).used(now)
	}
	return members, index(s).total() - index(s).expiredPlaces(now)
}

// Describe calls emit with the fields that RL.INFO shows of a stored value. The field used is the
// number of places in use at now, members is the number of all stored members, and reset-ms is the
// time until the last lease expires. Describe returns used. value must pass [Check] under mode. If
// mode is neither Leases nor Places, Describe emits nothing and returns 0.
func Describe(mode Mode, value []byte, now limit.Instant, emit func(field string, value int64)) (used int64) {
	if !known(mode) {
		return 0
	}
	_, used = inUse(mode, value, now)
	s := set(value)
	emit("used", used)
	emit("members", int64(s.size()))
	emit("reset-ms", limit.MillisUp(after(s.expiry(s.size()-1), now)))
	return used
}
