package collection

import "encoding/binary"

// load makes l the list with the flat bytes b, which are valid, and clears the delta.
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

// put stores value at position, which is in the list or next to one of its ends. It makes the list
// a large one if necessary.
func (l *List) put(position int64, value []byte) {
	if l.tree == nil && !l.putFlat(position, value) {
		l.growFlat()
	}
	if l.tree != nil {
		l.start, l.end = min(l.start, position), max(l.end, position+1)
		l.putTree(position, value)
	}
}

// putFlat does what put does in a small list. If the list would become large, putFlat returns false
// and stores nothing.
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

// putHeader writes the present bounds to the header of the flat bytes.
func (l *List) putHeader() {
	binary.LittleEndian.PutUint64(l.flatForm.b, uint64(l.start))
	l.flatForm.b[8] = byte(l.Len())
}

// bound removes all values but those at the positions from start to end-1. The list has these
// positions and no holes.
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
