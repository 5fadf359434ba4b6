package collection

import "encoding/binary"

// listHeader is the number of bytes of the header of a small list: the position of the first
// element (8 bytes) and the number of elements.
const listHeader = 8 + 1

// farthest is the maximum distance from 0 of a position that Apply and CheckList accept. With a
// push per nanosecond a list reaches it after about 146 years.
const farthest = 1 << 62

// appendFlat does what [List.AppendFlat] does. It also encodes holes.
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

// appendValue appends value to dst as an element of the flat form.
func appendValue(dst, value []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(value))+1), value...)
}

// appendHoles appends n positions without a value to dst: a 0, and n. It appends nothing if n is 0.
func appendHoles(dst []byte, n int64) []byte {
	if n == 0 {
		return dst
	}
	return binary.AppendUvarint(append(dst, 0), uint64(n))
}

// valueSize returns the number of bytes of a value of n bytes in the flat form.
func valueSize(n int) int { return uvarintSize(uint64(n)+1) + n }

// cutValue decodes the beginning of b: a value, which is not nil, or a number of holes. rest is the
// rest of b. ok is false if b begins with neither.
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

// flatRange yields the values of a small list whose indexes are in [from, to), and nil for a hole.
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

// span returns the offsets in the flat bytes at which the elements with the indexes [from, to)
// begin and end. The list has no holes.
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
