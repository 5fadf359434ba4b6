package concurrency

import (
	"bytes"
	"encoding/binary"

	"github.com/cellserver/cellserver/limit"
)

// index is the form of a large set: a header, a row of nodes with one for each
// member and room for more, and the members' names with room for more behind them.
// The nodes are linked to two balanced trees over the same members, see tree.
//
//	header  form (4 bytes, the first counts), then 32 bits each: members, nodes
//	        there is room for, root by expiry, root by name, bytes of names in
//	        use (names of dropped members included), bytes of live names, 0
//	node    expiry (64 bits), then 32 bits each: left, right and size by expiry,
//	        left, right and size by name, where the name begins; its length (16
//	        bits), 0
//
// A reference is the position of a node in the row, counted from 1; 0 is none.
// Which member is in which node has no meaning: the last one moves where another
// is dropped, so that the row has no holes.
type index []byte

// ref is a reference to a node.
type ref = uint32

const none ref = 0

const (
	indexHeader = 32
	nodeBytes   = 40

	headSize  = 4
	headRoom  = 8
	headRoots = 12 // by expiry, then by name
	headUsed  = 20
	headLive  = 24

	nodeLinks = 8 // left, right and size by expiry, then by name
	nodeName  = 32
	nodeLen   = 36
)

// dropMost is how many expired members a call drops at most. It is more than the
// one member that a call adds, so a backlog goes away and a set never holds more
// members than were live at one time.
const dropMost = 8

func (x index) u32(at int) uint32       { return binary.LittleEndian.Uint32(x[at:]) }
func (x index) setU32(at int, v uint32) { binary.LittleEndian.PutUint32(x[at:], v) }

func (x index) size() int { return int(x.u32(headSize)) }
func (x index) room() int { return int(x.u32(headRoom)) }

func (x index) node(r ref) int { return indexHeader + int(r-1)*nodeBytes }

func (x index) until(r ref) limit.Instant { return getInstant(x[x.node(r):]) }

// names returns all names and the room behind them.
func (x index) names() []byte { return x[indexHeader+x.room()*nodeBytes:] }

func (x index) name(r ref) []byte {
	n := x.node(r)
	at := int(x.u32(n + nodeName))
	return x.names()[at : at+int(binary.LittleEndian.Uint16(x[n+nodeLen:]))]
}

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

// at returns the i-th member by expiry; there must be one.
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

// find returns the node of member, or none.
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

// apply drops some of what has expired and does p's effect, in place unless the
// value has to be laid out anew.
func (x index) apply(dst []byte, p *Plan) []byte {
	for range dropMost {
		first := x.at(0)
		if x.size() == 1 || x.until(first) > p.Now || bytes.Equal(x.name(first), p.Member) {
			break
		}
		x.drop(first)
	}
	r := x.find(p.Member)
	switch {
	case p.Effect == Gone:
		if r != none {
			x.drop(r)
		}
		return x.shrunk(dst)
	case r != none:
		byExpiry.remove(x, r)
		putInstant(x[x.node(r):], p.Until)
		byExpiry.insert(x, r)
		return x.shrunk(dst)
	}
	if x.size() == x.room() || len(x.names())-int(x.u32(headUsed)) < len(p.Member) {
		x = x.laidOut(dst, x.size()+1, len(p.Member))
		x.add(p.Until, p.Member)
		return x
	}
	x.add(p.Until, p.Member)
	return x.shrunk(dst)
}

// add puts a new member into a set that has room for it.
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

// drop takes a member out and moves the last node into its place.
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
