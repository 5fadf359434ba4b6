package concurrency

import (
	"bytes"
	"encoding/binary"

	"github.com/cellserver/cellserver/limit"
)

func (x index) expired(now limit.Instant) (n int) {
	t := byExpiry
	for r := t.root(x); r != none; {
		if x.until(r) > now {
			r = t.left(x, r)
			continue
		}
		n += int(t.size(x, t.left(x, r))) + 1
		r = t.right(x, r)
	}
	return n
}

// at returns member i in the order of expiries. i must be less than the number of members.
func (x index) at(i int) ref {
	t := byExpiry
	r := t.root(x)
	for {
		left := int(t.size(x, t.left(x, r)))
		switch {
		case i == left:
			return r
		case i < left:
			r = t.left(x, r)
		default:
			i -= left + 1
			r = t.right(x, r)
		}
	}
}

func (x index) expiry(i int) limit.Instant { return x.until(x.at(i)) }

// find returns the node of member, or none if the set does not have it.
func (x index) find(member []byte) ref {
	t := byName
	r := t.root(x)
	for r != none {
		order := bytes.Compare(member, x.name(r))
		if order == 0 {
			return r
		}
		r = t.child(x, r, order > 0)
	}
	return none
}

// look sets h for a call of member at now.
func (x index) look(h *holdings, member []byte, now limit.Instant) {
	h.stored = x.size()
	h.live = h.stored - x.expired(now)
	h.last = x.expiry(h.stored - 1)
	h.others = h.last
	r := x.find(member)
	if r != none {
		until := x.until(r)
		if until > now {
			h.held, h.own = true, x.places(r)
		}
		if until == h.last {
			h.others = set(x).expiry(h.stored - 2)
		}
	}
	h.used = int64(h.live)
	if hasPlaces(x) {
		h.used = x.total() - x.expiredPlaces(now)
		h.several = !x.ones()
	}
}

// add adds a new member with places, whose lease ends at until, to a set that has room for it.
func (x index) add(until limit.Instant, places int64, member []byte) {
	r := ref(x.size() + 1)
	x.setU32(headSize, r)
	n := x.node(r)
	clear(x[n : n+nodeBytes])
	putInstant(x[n:], until)
	at := x.u32(headUsed)
	copy(x.names()[at:], member)
	x.setU32(n+nodeName, at)
	binary.LittleEndian.PutUint16(x[n+nodeLen:], uint16(len(member)))
	x.setU32(headUsed, at+uint32(len(member)))
	x.setU32(headLive, x.u32(headLive)+uint32(len(member)))
	if hasPlaces(x) {
		x.setPlaces(r, places)
	}
	byExpiry.insert(x, r)
	byName.insert(x, r)
}

// refresh gives the member at r so many places until the instant until.
func (x index) refresh(r ref, until limit.Instant, places int64) {
	byExpiry.remove(x, r)
	putInstant(x[x.node(r):], until)
	if hasPlaces(x) {
		x.setPlaces(r, places)
	}
	byExpiry.insert(x, r)
}

// drop removes the member at r, and moves the last node into its place.
func (x index) drop(r ref) {
	byExpiry.remove(x, r)
	byName.remove(x, r)
	x.setU32(headLive, x.u32(headLive)-uint32(len(x.name(r))))
	last := ref(x.size())
	if r != last {
		byExpiry.redirect(x, last, r)
		byName.redirect(x, last, r)
		copy(x[x.node(r):x.node(r)+nodeBytes], x[x.node(last):])
		if hasPlaces(x) {
			copy(x[x.weight(r):x.weight(r)+weightBytes], x[x.weight(last):])
		}
	}
	x.setU32(headSize, last-1)
}
