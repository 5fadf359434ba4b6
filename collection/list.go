package collection

import (
	"encoding/binary"
	"iter"

	"github.com/tidwall/btree"
)

// List is a sequence of values of any bytes that grows and shrinks at both ends. An index counts
// from 0 at the front. Operations of a large list at its ends and at an index take O(log n).
//
// Arguments are copied. They must not be slices that the same list has returned. Returned slices
// are valid until the next change, or as long as the list is pinned.
type List struct {
	// Max is the maximum number of elements; 0 means no limit.
	Max int
	// Tight makes Admits refuse the values that [Hash.Tight] refuses.
	Tight bool

	// The elements have the positions from start to end-1.
	start, end int64
	flatForm   flat
	// A large list is a tree by position, nil while the list is flat; positions without an entry
	// are holes. bytes is the size that the elements would have in the flat form.
	tree  *btree.Map[int64, []byte]
	bytes int
	cost  int64
	longs

	// changed says that there is a delta, and replaces that the delta replaces everything.
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

// ResetDelta clears the delta.
func (l *List) ResetDelta() {
	l.delta = resetDelta(l.delta)
	l.changed, l.replaces = false, false
}

// A delta of a list has what it replaces, the bounds of the list, and pairs of a position and a
// value. A value outside of the bounds was added and removed again.
const (
	// keepsInside: elements within the bounds that the delta does not name stay.
	keepsInside = 1
	// replacesAll: nothing stays.
	replacesAll = 2

	listDeltaHeader = 1 + 8 + 8
)

// beginDelta reserves room for the header, which Delta fills in.
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

// record adds the value at a position to the delta.
func (l *List) record(position int64, value []byte) {
	l.changed = true
	l.beginDelta()
	l.delta = binary.AppendVarint(l.delta, position)
	l.delta = appendElement(l.delta, value)
}

// Drop says that the list has been removed from the store.
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

// Copied returns the number of bytes that a reply with all of a large list takes: those of the
// elements that it copies, and of its references to the others. It is 0 for a small list.
func (l *List) Copied() int { return l.copied(l.bytes) }

// Load makes l the list in flat; see [Hash.Load].
func (l *List) Load(flat []byte) { l.load(flat) }

// Whole reports whether all positions have a value. Positions without one only exist while deltas
// are replayed.
func (l *List) Whole() bool {
	if l.tree != nil {
		return l.tree.Len() == l.Len()
	}
	for v := range l.Range(0, l.Len()) {
		if v == nil {
			return false
		}
	}
	return true
}

// PushFront adds a value before all others. The error is [ErrFull].
func (l *List) PushFront(value []byte) error {
	if l.Max > 0 && l.Len() >= l.Max {
		return ErrFull
	}
	l.put(l.start-1, value)
	l.record(l.start, value)
	return nil
}

// PushBack adds a value after all others. The error is [ErrFull].
func (l *List) PushBack(value []byte) error {
	if l.Max > 0 && l.Len() >= l.Max {
		return ErrFull
	}
	l.put(l.end, value)
	l.record(l.end-1, value)
	return nil
}

// PopFront removes the first value and returns it, or false if there is none.
func (l *List) PopFront() (value []byte, ok bool) {
	if l.Len() == 0 {
		return nil, false
	}
	return l.pop(l.start), true
}

// PopBack removes the last value and returns it, or false if there is none.
func (l *List) PopBack() (value []byte, ok bool) {
	if l.Len() == 0 {
		return nil, false
	}
	return l.pop(l.end - 1), true
}

// pop removes the value at one of the ends.
func (l *List) pop(position int64) []byte {
	value := l.get(position)
	if l.tree == nil {
		l.popped = append(l.popped[:0], value...)
		value = l.popped
	}
	l.changed = true
	if position == l.start {
		l.bound(l.start+1, l.end)
	} else {
		l.bound(l.start, l.end-1)
	}
	return value
}

// At returns the value with an index, or false if there is none.
func (l *List) At(index int) (value []byte, ok bool) {
	if index < 0 || index >= l.Len() {
		return nil, false
	}
	return l.get(l.start + int64(index)), true
}

func (l *List) get(position int64) []byte {
	if l.tree != nil {
		value, _ := l.tree.Get(position)
		return value
	}
	i := int(position - l.start)
	for value := range l.Range(i, i+1) {
		return value
	}
	return nil
}

// Admits reports whether value may replace the one with an index.
func (l *List) Admits(index int, value []byte) bool {
	if !l.Tight {
		return true
	}
	old, ok := l.At(index)
	return !ok || !l.grows(old, value)
}

// Set replaces the value at an index, and reports whether there is one.
func (l *List) Set(index int, value []byte) bool {
	if index < 0 || index >= l.Len() {
		return false
	}
	l.put(l.start+int64(index), value)
	l.record(l.start+int64(index), value)
	return true
}

// Range iterates over the values from index from to index to-1. The list must not be changed
// meanwhile.
func (l *List) Range(from, to int) iter.Seq[[]byte] {
	from, to = max(from, 0), min(to, l.Len())
	return func(yield func([]byte) bool) {
		switch {
		case from >= to:
		case l.tree != nil:
			end := l.start + int64(to)
			l.tree.Ascend(l.start+int64(from), func(position int64, value []byte) bool {
				return position < end && yield(value)
			})
		default:
			l.flatRange(from, to, yield)
		}
	}
}

// Trim removes all values but those from index from to index to-1. For a list that is not empty it
// counts as a change even if it removes nothing, as for WATCH in Redis.
func (l *List) Trim(from, to int) {
	from, to = max(from, 0), min(to, l.Len())
	if from >= to {
		from, to = 0, 0
	}
	if l.Len() == 0 {
		return
	}
	l.bound(l.start+int64(from), l.start+int64(to))
	l.changed = true
}

// Remove removes values equal to value and returns their number: the first count of them, the last
// -count if count is negative, or all if it is 0. The values on one side of them get new positions,
// which are part of the delta.
func (l *List) Remove(value []byte, count int) (removed int) {
	var equal []int64 // positions
	position := l.start
	for v := range l.Range(0, l.Len()) {
		if string(v) == string(value) {
			equal = append(equal, position)
		}
		position++
	}
	switch {
	case count > 0:
		equal = equal[:min(count, len(equal))]
	case count < 0:
		equal = equal[max(0, len(equal)+count):]
	}
	switch {
	case len(equal) == 0:
	case l.tree != nil:
		l.removeTree(equal)
	default:
		l.removeFlat(equal)
	}
	return len(equal)
}

// removeFlat removes the values at positions, which are sorted, by copying all others.
func (l *List) removeFlat(positions []int64) {
	next := List{start: l.start, end: l.start, changed: true, replaces: true}
	position := l.start
	for v := range l.Range(0, l.Len()) {
		if len(positions) > 0 && positions[0] == position {
			positions = positions[1:]
		} else {
			_ = next.PushBack(v) // no error: next has no Max
		}
		position++
	}
	next.Max, next.longs = l.Max, l.longs
	*l = next
}

// AppendFlat appends the bytes of a list of any size.
func (l *List) AppendFlat(dst []byte) []byte { return l.appendFlat(dst) }

// Delta returns the effects of all changes; see [Hash.Delta].
func (l *List) Delta() []byte {
	if !l.changed {
		return nil
	}
	l.beginDelta()
	binary.LittleEndian.PutUint64(l.delta[1:], uint64(l.start))
	binary.LittleEndian.PutUint64(l.delta[9:], uint64(l.end))
	return l.delta
}
