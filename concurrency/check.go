package concurrency

import (
	"bytes"
	"encoding/binary"

	"github.com/cellserver/cellserver/limit"
)

// Check returns nil if value is valid for [Decide] and Apply under mode, otherwise [ErrCorrupt].
// value may be any bytes, such as the bytes of a file. Check never panics, and takes time in
// proportion to the length of value.
func Check(mode Mode, value []byte) error {
	ok := known(mode) && len(value) > 0 && value[0] <= formPlacesIndex && modeOf(value) == mode
	if ok {
		switch value[0] {
		case formList, formPlacesList:
			ok = list(value).sound()
		case formIndex, formPlacesIndex:
			ok = index(value).sound()
		default:
			ok = false
		}
	}
	if !ok {
		return ErrCorrupt
	}
	return nil
}

// sound reports whether l is a valid list. l may be any bytes.
func (l list) sound() bool {
	if len(l) < listHeader {
		return false
	}
	var (
		seen   [listMost][]byte
		before = limit.MinInstant
		n      = 0
		header = l.header()
	)
	for at := listHeader; at < len(l); n++ {
		if n == listMost || len(l)-at < header {
			return false
		}
		until, end := l.entry(at, header)
		if end-at-header > MaxMemberSize || end > len(l) || until < before || !validPlaces(l.places(at, header)) {
			return false
		}
		seen[n] = l[at+header : end]
		for _, m := range seen[:n] {
			if bytes.Equal(m, seen[n]) {
				return false
			}
		}
		at, before = end, until
	}
	return n > 0 && n == l.size()
}

// sound reports whether x is a valid index. x may be any bytes.
func (x index) sound() bool {
	if len(x) < indexHeader {
		return false
	}
	size, room := uint64(x.u32(headSize)), uint64(x.u32(headRoom))
	perNode := uint64(nodeBytes)
	if hasPlaces(x) {
		perNode += weightBytes
	}
	if size < 1 || size > room || indexHeader+room*perNode > uint64(len(x)) {
		return false
	}
	used, live := uint64(x.u32(headUsed)), uint64(x.u32(headLive))
	if names := uint64(x.namesRoom()); live > used || used > names || names > 1<<32-1 {
		return false
	}
	total := uint64(0)
	for r := ref(1); uint64(r) <= size; r++ {
		n := x.node(r)
		length := uint64(binary.LittleEndian.Uint16(x[n+nodeLen:]))
		if length > MaxMemberSize || uint64(x.u32(n+nodeName))+length > used || !validPlaces(x.places(r)) {
			return false
		}
		total += length
	}
	return total == live && byExpiry.sound(x) && byName.sound(x)
}

func validPlaces(n int64) bool { return n >= 1 && n <= MaxPlaces }

// summed reports whether the sum of r is right, if the sums of its children are. The right child may
// be any reference.
func (x index) summed(r ref) bool {
	left, right := byExpiry.left(x, r), byExpiry.right(x, r)
	switch {
	case !hasPlaces(x):
		return true
	case right > ref(x.size()):
		return false
	}
	return x.sum(r) == x.sum(left)+x.sum(right)+x.places(r)
}

// sound reports whether t is a balanced tree of all members of x in order. The numbers in every
// node, except for the links of trees, must have been checked before.
func (t tree) sound(x index) bool {
	before := none
	return t.soundBelow(x, t.root(x), uint32(x.size()), &before)
}

// soundBelow reports whether the subtree at top has exactly size members, in order and all of them
// after the member before. It sets before to the last of them. Sizes decrease and siblings must
// balance at every level, so the recursion cannot loop or go deep. Members in strict order are
// distinct, so if their number is right, all members are in the tree.
func (t tree) soundBelow(x index, top ref, size uint32, before *ref) bool {
	if top == none || size == 0 {
		return top == none && size == 0
	}
	if top > ref(x.size()) || t.size(x, top) != size {
		return false
	}
	rest := size - 1
	left := none
	if l := t.left(x, top); l != none {
		if l > ref(x.size()) {
			return false
		}
		left = t.size(x, l)
	}
	if left > rest {
		return false
	}
	right := rest - left
	if left+1 > weightDelta*(right+1) || right+1 > weightDelta*(left+1) {
		return false
	}
	if t == byExpiry && !x.summed(top) {
		return false
	}
	if !t.soundBelow(x, t.left(x, top), left, before) {
		return false
	}
	if *before != none && t.compare(x, *before, top) >= 0 {
		return false
	}
	*before = top
	return t.soundBelow(x, t.right(x, top), right, before)
}
