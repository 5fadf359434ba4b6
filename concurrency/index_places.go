package concurrency

import (
	"encoding/binary"
	"math"

	"github.com/cellserver/cellserver/limit"
)

// weight returns the offset of the weight of r. The mode must be Places.
func (x index) weight(r ref) int { return len(x) - int(r)*weightBytes }

// weights returns the number of bytes of all weights, which is 0 in mode Leases.
func (x index) weights() int {
	if hasPlaces(x) {
		return x.room() * weightBytes
	}
	return 0
}

// sum returns the sum of the places in the subtree by expiry at r, which may be none. The mode must
// be Places.
func (x index) sum(r ref) int64 {
	if r == none {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(x[x.weight(r):]))
}

func (x index) setSum(r ref, sum int64) {
	binary.LittleEndian.PutUint64(x[x.weight(r):], uint64(sum))
}

// places returns the number of places of the member at r.
func (x index) places(r ref) int64 {
	if hasPlaces(x) {
		return int64(x.u32(x.weight(r) + weightPlaces))
	}
	return 1
}

// setPlaces sets the number of places of the member at r. The mode must be Places, and r must not
// be in the tree by expiry, whose sums would be wrong.
func (x index) setPlaces(r ref, places int64) { x.setU32(x.weight(r)+weightPlaces, uint32(places)) }

// total returns the number of places of all members. The mode must be Places.
func (x index) total() int64 { return x.sum(byExpiry.root(x)) }

// expiredPlaces returns the number of places of the members whose leases have expired at now.
func (x index) expiredPlaces(now limit.Instant) (n int64) {
	if !hasPlaces(x) {
		return int64(x.expired(now))
	}
	t := byExpiry
	for r := t.root(x); r != none; {
		if x.until(r) > now {
			r = t.left(x, r)
			continue
		}
		n += x.sum(t.left(x, r)) + x.places(r)
		r = t.right(x, r)
	}
	return n
}

// reach returns the first member in the order of expiries up to which, inclusive, the members have
// at least places, which must be positive. All members together must have that many.
func (x index) reach(places int64) ref {
	if !hasPlaces(x) {
		return x.at(int(places) - 1)
	}
	t := byExpiry
	r := t.root(x)
	for {
		left := x.sum(t.left(x, r))
		switch {
		case places <= left:
			r = t.left(x, r)
		case places <= left+x.places(r):
			return r
		default:
			places -= left + x.places(r)
			r = t.right(x, r)
		}
	}
}

// freed does what the method freed of set does, for an index.
func (x index) freed(places int64, member []byte, now limit.Instant) limit.Instant {
	places += x.expiredPlaces(now)
	r, own := x.reach(places), x.find(member)
	if own != none && x.until(own) > now && byExpiry.compare(x, own, r) <= 0 {
		// The member is among those up to r, so r has counted its places.
		r = x.reach(places + x.places(own))
	}
	return x.until(r)
}

// count updates the number of members with one place after a call. In mode Leases it does nothing.
func (x index) count() {
	switch {
	case !hasPlaces(x):
	case x.total() != int64(x.size()):
		x.setU32(headOnes, 0)
	case x.u32(headOnes) < math.MaxUint32:
		x.setU32(headOnes, x.u32(headOnes)+1)
	}
}

// ones reports whether the set may get the mode Leases: each stored member has one place, and had
// it after so many calls in a row as there are members. So the work of the change, which copies all
// members, is small for each call. The mode must be Places.
func (x index) ones() bool {
	return x.total() == int64(x.size()) && int64(x.u32(headOnes)) >= int64(x.size())
}
