package collection

import "encoding/binary"

// listHeader is the size of the header of a small list: the position of the first element and the
// number of elements.
const listHeader = 8 + 1

// farthest bounds the distance of a position from 0, so that no sum of two overflows. A list
// reaches it only after 150 years with a push per nanosecond.
const farthest = 1 << 62

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

// appendHoles appends n positions without a value: a 0, and n.
func appendHoles(dst []byte, n int64) []byte {
	if n == 0 {
		return dst
	}
	return binary.AppendUvarint(append(dst, 0), uint64(n))
}

// valueSize returns the size of an element in the flat form.
func valueSize(n int) int { return uvarintSize(uint64(n)+1) + n }

// cutValue decodes an element, or a sequence of holes, at the beginning of b. A value is not nil.
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

// span returns the place of the elements from index from to index to-1 in the flat bytes of a list
// without holes.
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
