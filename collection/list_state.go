package collection

import (
	"encoding/binary"

	"github.com/tidwall/btree"
)

// List is a row of values, any bytes, that grows and shrinks at both ends. An index
// counts from 0 at the front. At both ends, and at an index, a large list takes
// O(log n).
//
// Arguments are copied. They must not be slices that the same list has returned.
// What it returns is valid until its next change, or as long as the list is pinned.
type List struct {
	// Max is the most elements it may have; 0 is no limit.
	Max int
	// Tight has Admits refuse what [Hash.Tight] refuses.
	Tight bool

	// The elements have the positions from start to before end.
	start, end int64
	flatForm   flat
	// A large list is a tree by position, nil while it is flat; positions that are not
	// in it are holes. bytes is how large its elements would be in the flat form.
	tree  *btree.Map[int64, []byte]
	bytes int
	cost  int64
	longs

	// changed says that there is a delta, and replaces that it replaces all.
	changed  bool
	replaces bool
	delta    []byte
	// popped is the last value that was removed from a flat list.
	popped []byte
}

// Len returns the number of elements.
func (l *List) Len() int { return int(l.end - l.start) }

// Cost returns roughly the bytes of memory that a large list takes; 0 while it is
// flat.
func (l *List) Cost() int64 { return l.cost }

// Flat returns the bytes of a small list; see [Hash.Flat].
func (l *List) Flat() (flat []byte, ok bool) {
	switch {
	case l.tree != nil:
		return nil, false
	case l.Len() == 0:
		return nil, true
	}
	return l.flatForm.b, true
}

// ResetDelta forgets the delta.
func (l *List) ResetDelta() {
	l.delta = resetDelta(l.delta)
	l.changed, l.replaces = false, false
}

// A delta of a list is what it replaces, its bounds, and rows of a position and a
// value. A value outside of the bounds has come and gone.
const (
	// keepsInside: elements within the bounds that are not named stay.
	keepsInside = 1
	// replacesAll: nothing stays.
	replacesAll = 2

	listDeltaHeader = 1 + 8 + 8
)

// beginDelta makes room for what Delta fills in.
func (l *List) beginDelta() {
	if len(l.delta) > 0 {
		return
	}
	var header [listDeltaHeader]byte
	header[0] = keepsInside
	if l.replaces {
		header[0] = replacesAll
	}
	l.delta = append(l.delta, header[:]...)
}

// record notes that a position has a value.
func (l *List) record(position int64, value []byte) {
	l.changed = true
	l.beginDelta()
	l.delta = binary.AppendVarint(l.delta, position)
	l.delta = appendElement(l.delta, value)
}

// Drop says that the list is not in the store any more.
func (l *List) Drop() {
	if l.long == 0 || l.tree == nil {
		return
	}
	l.tree.Scan(func(_ int64, value []byte) bool {
		l.gone(value)
		return true
	})
	l.long = 0
}

// Copied is how many bytes a reply with all of a large list takes: those of the elements
// that it copies, and of its references to the others. It is 0 for a small one.
func (l *List) Copied() int { return l.copied(l.bytes) }
