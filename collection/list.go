package collection

import (
	"encoding/binary"
	"iter"

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

// Load makes l what flat says; see [Hash.Load].
func (l *List) Load(flat []byte) { l.load(flat) }

// Len returns the number of elements.
func (l *List) Len() int { return int(l.end - l.start) }

// Whole says whether all positions have a value. One that has not may only be met
// while deltas are being replayed.
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

// PushBack adds a value behind all others. The error is [ErrFull].
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

// At returns the value with an index, or false if there is none.
func (l *List) At(index int) (value []byte, ok bool) {
	if index < 0 || index >= l.Len() {
		return nil, false
	}
	return l.get(l.start + int64(index)), true
}

// Admits reports whether value may replace the one with an index.
func (l *List) Admits(index int, value []byte) bool {
	if !l.Tight {
		return true
	}
	old, ok := l.At(index)
	return !ok || !l.grows(old, value)
}

// Set replaces the value with an index, and says whether there is one.
func (l *List) Set(index int, value []byte) bool {
	if index < 0 || index >= l.Len() {
		return false
	}
	l.put(l.start+int64(index), value)
	l.record(l.start+int64(index), value)
	return true
}

// Range iterates the values whose index is at least from and less than to. The list
// must not be changed meanwhile.
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

// Trim removes all values but those whose index is at least from and less than to.
func (l *List) Trim(from, to int) {
	from, to = max(from, 0), min(to, l.Len())
	if from >= to {
		from, to = 0, 0
	}
	if to-from == l.Len() {
		return
	}
	l.bound(l.start+int64(from), l.start+int64(to))
	l.changed = true
}

// Remove removes values equal to value and returns their number: the first count of
// them, the last -count if count is negative, all if it is 0. What is beside them on one
// side gets new positions, and the delta has that.
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

// AppendFlat appends the bytes of a list of any size.
func (l *List) AppendFlat(dst []byte) []byte { return l.appendFlat(dst) }

// Cost returns roughly the bytes of memory that a large list takes; 0 while it is
// flat.
func (l *List) Cost() int64 { return l.cost }

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

// ResetDelta forgets the delta.
func (l *List) ResetDelta() {
	l.delta = resetDelta(l.delta)
	l.changed, l.replaces = false, false
}
