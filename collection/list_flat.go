package collection

import (
	"encoding/binary"
)

// listHeader is the size of what stands before the elements of a small list: the
// position of the first one and their number.
const listHeader = 8 + 1

// The most that a position may be away from 0, so that no sum of two wraps. No list
// gets there: that takes 150 years of a push per nanosecond.
const farthest = 1 << 62

func (l *List) load(b []byte) {
	l.start, l.end, l.tree, l.bytes, l.cost = 0, 0, nil, 0, 0
	l.long, l.longBytes = 0, 0
	l.ResetDelta()
	l.flatForm.load(b)
	if len(b) <= 8 {
		return
	}
	n, rest, _ := cutUvarint(b[8:])
	l.start = int64(binary.LittleEndian.Uint64(b))
	l.end = l.start + int64(n)
	if n > flatElements || len(b) > flatBytes {
		l.grow(rest)
	}
}

func (l *List) appendFlat(dst []byte) []byte {
	if b, ok := l.Flat(); ok {
		return append(dst, b...)
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(l.start))
	dst = binary.AppendUvarint(dst, uint64(l.end-l.start))
	next := l.start
	l.tree.Scan(func(position int64, value []byte) bool {
		dst = appendHoles(dst, position-next)
		dst = appendValue(dst, value)
		next = position + 1
		return true
	})
	return appendHoles(dst, l.end-next)
}

// appendValue appends an element of the flat form.
func appendValue(dst, value []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(value))+1), value...)
}

// appendHoles appends a row of n positions without a value: a 0, and how many.
func appendHoles(dst []byte, n int64) []byte {
	if n == 0 {
		return dst
	}
	return binary.AppendUvarint(append(dst, 0), uint64(n))
}

// valueSize returns the size of an element in the flat form.
func valueSize(n int) int { return uvarintSize(uint64(n)+1) + n }

// cutValue takes an element, or a row of holes, off b. A value is not nil.
func cutValue(b []byte) (value []byte, holes uint64, rest []byte, ok bool) {
	n, b, ok := cutUvarint(b)
	switch {
	case !ok || n > uint64(len(b))+1:
		return nil, 0, nil, false
	case n == 0:
		holes, b, ok = cutUvarint(b)
		return nil, holes, b, ok && holes > 0
	}
	return b[: n-1 : n-1], 0, b[n-1:], true
}

// flatRange yields elements of the flat bytes, nil for a hole.
func (l *List) flatRange(from, to int, yield func([]byte) bool) {
	i := 0
	for b := l.flatForm.b[listHeader:]; len(b) > 0 && i < to; {
		value, holes, rest, _ := cutValue(b)
		b = rest
		for range max(holes, 1) {
			if i >= from && i < to && !yield(value) {
				return
			}
			i++
		}
	}
}

// span returns where elements from an index to before another are in the flat bytes
// of a list without holes.
func (l *List) span(from, to int) (begin, end int) {
	all := l.flatForm.b
	b := all[listHeader:]
	for i := range to {
		if i == from {
			begin = len(all) - len(b)
		}
		_, _, b, _ = cutValue(b)
	}
	return begin, len(all) - len(b)
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

// put gives a position in the list, or next to one of its ends, a value.
func (l *List) put(position int64, value []byte) {
	if l.tree == nil && !l.putFlat(position, value) {
		l.growFlat()
	}
	if l.tree != nil {
		l.start, l.end = min(l.start, position), max(l.end, position+1)
		l.putTree(position, value)
	}
}

// putFlat is put in the flat bytes, or false if it does not fit.
func (l *List) putFlat(position int64, value []byte) bool {
	n := l.Len()
	if n == 0 {
		l.flatForm.gap(0, len(l.flatForm.b), listHeader)
	}
	begin, end := len(l.flatForm.b), len(l.flatForm.b)
	inside := position >= l.start && position < l.end
	switch {
	case inside:
		begin, end = l.span(int(position-l.start), int(position-l.start)+1)
	case position < l.start:
		begin, end = listHeader, listHeader
	}
	size := valueSize(len(value))
	if len(l.flatForm.b)-(end-begin)+size > flatBytes || !inside && n >= flatElements {
		return false
	}
	b := l.flatForm.gap(begin, end-begin, size)
	k := binary.PutUvarint(b, uint64(len(value))+1)
	copy(b[k:], value)
	l.start, l.end = min(l.start, position), max(l.end, position+1)
	l.putHeader()
	return true
}

func (l *List) putHeader() {
	binary.LittleEndian.PutUint64(l.flatForm.b, uint64(l.start))
	l.flatForm.b[8] = byte(l.Len())
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

// bound cuts a list without holes to the positions from start to before end, which
// are all in it.
func (l *List) bound(start, end int64) {
	if l.tree != nil {
		l.boundTree(start, end)
		return
	}
	_, tail := l.span(0, int(end-l.start))
	l.flatForm.gap(tail, len(l.flatForm.b)-tail, 0)
	_, head := l.span(0, int(start-l.start))
	l.flatForm.gap(listHeader, head-listHeader, 0)
	l.start, l.end = start, end
	l.putHeader()
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
