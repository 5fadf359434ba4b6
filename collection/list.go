package collection

import (
	"encoding/binary"
	"iter"
)

// Load makes l what flat says; see [Hash.Load].
func (l *List) Load(flat []byte) { l.load(flat) }

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

// Trim removes all values but those whose index is at least from and less than to. It changes a list
// that is not empty even if that removes nothing: WATCH of Redis sees it so.
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

// removeFlat removes the values at positions, which are in order, by writing all others
// anew.
func (l *List) removeFlat(positions []int64) {
	next := List{start: l.start, end: l.start, changed: true, replaces: true}
	position := l.start
	for v := range l.Range(0, l.Len()) {
		if len(positions) > 0 && positions[0] == position {
			positions = positions[1:]
		} else {
			_ = next.PushBack(v) // it has no Max
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
