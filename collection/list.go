package collection

import (
	"encoding/binary"
	"iter"

	"github.com/tidwall/btree"
)

// List is a sequence of values of any bytes. Values can be added and removed at both ends. The
// index of a value counts from 0 at the front. In a large list, operations at the ends and at an
// index take O(log n).
//
// The methods except Load copy their arguments, which must not be slices that the same list
// returned. Returned slices are valid until the list is changed, or as long as it is pinned.
type List struct {
	// Max is the maximum number of elements; 0 means no limit.
	Max int
	// Tight makes [List.Admits] return false for a value that takes more memory than the one it
	// replaces: see [Hash.Tight].
	Tight bool

	// The elements have the positions from start to end-1.
	start, end int64
	flatForm   flat
	// A large list is a tree by position; tree is nil while the list is flat. Positions without an
	// entry are holes. bytes is the size that the elements would have in the flat form, and cost is
	// the number of bytes of memory that they take.
	tree  *btree.Map[int64, []byte]
	bytes int
	cost  int64
	longs

	// changed is true if there is a delta. replaces is true if the delta replaces all former
	// values.
	changed  bool
	replaces bool
	delta    []byte
	// popped has a copy of the last value that pop has removed from a flat list; pop reuses its
	// memory.
	popped []byte
}

// Len returns the number of elements.
func (l *List) Len() int { return int(l.end - l.start) }

// Cost returns the approximate number of bytes of memory that the elements of a large list take. It
// returns 0 for a small list.
func (l *List) Cost() int64 { return l.cost }

// Flat returns the bytes of a small list without a copy: see [Hash.Flat].
func (l *List) Flat() (flat []byte, ok bool) {
	switch {
	case l.tree != nil:
		return nil, false
	case l.Len() == 0:
		return nil, true
	}
	return l.flatForm.b, true
}

// ResetDelta empties the delta, after its effects have been recorded.
func (l *List) ResetDelta() {
	l.delta = resetDelta(l.delta)
	l.changed, l.replaces = false, false
}

// A delta of a list has a byte which says what the delta replaces, the bounds of the list (8 bytes
// each), and pairs of a position and a value. A value outside of the bounds was added and removed
// again.
const (
	// keepsInside means that elements within the bounds stay unless the delta has their positions.
	keepsInside = 1
	// replacesAll means that no former element stays.
	replacesAll = 2

	listDeltaHeader = 1 + 8 + 8
)

// beginDelta appends the header to an empty delta. Delta fills in the bounds.
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

// record adds the value at position to the delta.
func (l *List) record(position int64, value []byte) {
	l.changed = true
	l.beginDelta()
	l.delta = binary.AppendVarint(l.delta, position)
	l.delta = appendElement(l.delta, value)
}

// Drop gives up the long values: see [Hash.Drop].
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

// Copied returns the number of bytes that a reply with a whole large list takes: the bytes of the
// elements that the reply copies, and the sizes of its references to the long elements. It returns
// 0 for a small list.
func (l *List) Copied() int { return l.copied(l.bytes) }

// Load sets l to the list that the bytes in flat encode. flat must have passed [CheckList] or come
// from a list; see [Hash.Load].
func (l *List) Load(flat []byte) { l.load(flat) }

// Whole reports whether all positions of the list have a value. Positions without a value exist
// only while deltas are replayed.
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

// PushFront adds value before all others. The error is [ErrFull]; then nothing is changed.
func (l *List) PushFront(value []byte) error {
	if l.Max > 0 && l.Len() >= l.Max {
		return ErrFull
	}
	l.put(l.start-1, value)
	l.record(l.start, value)
	return nil
}

// PushBack adds value after all others. The error is [ErrFull]; then nothing is changed.
func (l *List) PushBack(value []byte) error {
	if l.Max > 0 && l.Len() >= l.Max {
		return ErrFull
	}
	l.put(l.end, value)
	l.record(l.end-1, value)
	return nil
}

// PopFront removes and returns the first value. ok is false if the list is empty.
func (l *List) PopFront() (value []byte, ok bool) {
	if l.Len() == 0 {
		return nil, false
	}
	return l.pop(l.start), true
}

// PopBack removes and returns the last value. ok is false if the list is empty.
func (l *List) PopBack() (value []byte, ok bool) {
	if l.Len() == 0 {
		return nil, false
	}
	return l.pop(l.end - 1), true
}

// pop removes and returns the value at position, which is the first or the last of the list. A
// value of a small list is a copy that stays valid until the next call of pop.
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

// At returns the value with the given index. ok is false if the list has no such index.
func (l *List) At(index int) (value []byte, ok bool) {
	if index < 0 || index >= l.Len() {
		return nil, false
	}
	return l.get(l.start + int64(index)), true
}

// get returns the value at position, or nil if there is none.
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

// Admits reports whether value may replace the value with the given index. It returns false only if
// l.Tight is set and value would take more memory.
func (l *List) Admits(index int, value []byte) bool {
	if !l.Tight {
		return true
	}
	old, ok := l.At(index)
	return !ok || !l.grows(old, value)
}

// Set replaces the value with the given index by value. It returns false and does nothing if the
// list has no such index. It ignores Tight: see [List.Admits].
func (l *List) Set(index int, value []byte) bool {
	if index < 0 || index >= l.Len() {
		return false
	}
	l.put(l.start+int64(index), value)
	l.record(l.start+int64(index), value)
	return true
}

// Range iterates over the values whose indexes are in [from, to), as far as they exist. The list
// must not be changed during the iteration. Range yields nil for a hole (see [List.Whole]) of a
// small list, and skips the holes of a large one.
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

// Trim keeps the values whose indexes are in [from, to) and removes all others. For a list that is
// not empty, Trim counts as a change even if it removes nothing, as for WATCH in Redis.
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

// Remove removes values equal to value: the first count of them, the last -count of them if count
// is negative, or all if count is 0. It returns the number of removed values.
func (l *List) Remove(value []byte, count int) (removed int) {
	var equal []int64 // positions of the elements that are equal to value
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

// removeFlat removes the values at positions, which are sorted, from a small list, by copying all
// other values.
func (l *List) removeFlat(positions []int64) {
	next := List{start: l.start, end: l.start, changed: true, replaces: true}
	position := l.start
	for v := range l.Range(0, l.Len()) {
		if len(positions) > 0 && positions[0] == position {
			positions = positions[1:]
		} else {
			_ = next.PushBack(v) // there is no error, because next has no Max
		}
		position++
	}
	next.Max, next.longs = l.Max, l.longs
	*l = next
}

// AppendFlat appends the flat bytes of a list of any size to dst and returns the result.
func (l *List) AppendFlat(dst []byte) []byte { return l.appendFlat(dst) }

// Delta returns the effects of all changes since the last Load or ResetDelta: see [Hash.Delta].
func (l *List) Delta() []byte {
	if !l.changed {
		return nil
	}
	l.beginDelta()
	binary.LittleEndian.PutUint64(l.delta[1:], uint64(l.start))
	binary.LittleEndian.PutUint64(l.delta[9:], uint64(l.end))
	return l.delta
}
