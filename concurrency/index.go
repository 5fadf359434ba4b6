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

// add adds a new member, whose lease ends at until, to a set that has room for it.
func (x index) add(until limit.Instant, member []byte) {
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
	byExpiry.insert(x, r)
	byName.insert(x, r)
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
	}
	x.setU32(headSize, last-1)
}
