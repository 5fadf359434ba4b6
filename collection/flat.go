package collection

import (
	"encoding/binary"
	"unsafe"
)

// flat has the bytes of a small collection. Bytes that were passed to load belong to the caller of
// load; the first change copies them to own.
type flat struct {
	b     []byte
	owned bool // whether b is in own, so that it may be changed
	// own is the buffer for bytes that change. load keeps it for later changes.
	own []byte
}

// load makes b the bytes of f. b must not change until the next call of load, gap or take.
func (f *flat) load(b []byte) { f.b, f.owned = b, false }

// drop drops the bytes and the buffer, because a tree or map has replaced them.
func (f *flat) drop() { *f = flat{} }

// gap replaces the n bytes at the offset at by m undefined bytes, and returns these m bytes for the
// caller to fill.
func (f *flat) gap(at, n, m int) []byte {
	if !f.owned {
		f.own = append(f.own[:0], f.b...)
		f.b, f.owned = f.own, true
	}
	old := len(f.b)
	if grow := m - n; grow > 0 {
		if cap(f.b)-old < grow {
			// There is room for more elements, since a collection is usually built element by
			// element.
			f.b = append(make([]byte, 0, 2*(old+grow)), f.b...)
		}
		f.b = f.b[:old+grow]
		copy(f.b[at+m:], f.b[at+n:old])
	} else {
		copy(f.b[at+m:], f.b[at+n:old])
		f.b = f.b[:old+grow]
	}
	f.own = f.b
	return f.b[at : at+m]
}

// take makes b the bytes and the buffer of f, which then owns b, and returns the former buffer,
// emptied.
func (f *flat) take(b []byte) (free []byte) {
	free = f.own
	f.b, f.own, f.owned = b, b, true
	return free[:0]
}

// cut decodes the length and the element at the beginning of b. It returns the element and the rest
// of b. ok is false if b is too short, or if the length has more bytes than needed, so that equal
// collections have equal bytes.
func cut(b []byte) (element, rest []byte, ok bool) {
	n, b, ok := cutUvarint(b)
	if !ok || n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}

// cutUvarint returns the number at the beginning of b, an unsigned varint, and the rest of b. ok is
// false unless the varint has its shortest form.
func cutUvarint(b []byte) (n uint64, rest []byte, ok bool) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), b[1:], true
	}
	n, size := binary.Uvarint(b)
	if size <= 0 || b[size-1] == 0 {
		return 0, nil, false
	}
	return n, b[size:], true
}

// appendElement appends element, preceded by its length, to dst.
func appendElement(dst, element []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(element))), element...)
}

// putElement writes element, preceded by its length, to the beginning of dst, and returns the rest
// of dst.
func putElement(dst, element []byte) (rest []byte) {
	n := binary.PutUvarint(dst, uint64(len(element)))
	return dst[n+copy(dst[n:], element):]
}

// elementSize returns the number of bytes that an element of n bytes and its length take.
func elementSize(n int) int { return uvarintSize(uint64(n)) + n }

// uvarintSize returns the number of bytes of n as an unsigned varint.
func uvarintSize(n uint64) (size int) {
	for size = 1; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

// allocated returns about the number of bytes of memory that a slice or string of n bytes takes.
func allocated(n int) int64 {
	const step = 16
	return int64((n + step - 1) / step * step)
}

// bytesOf returns the bytes of s without a copy. They must not be changed.
func bytesOf(s string) []byte {
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// bytesAsString returns a string with the memory of b. The string must not be used after b has
// changed.
func bytesAsString(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// deltaKept is the maximum capacity in bytes of a delta buffer that is kept for the next delta.
const deltaKept = 4096

// resetDelta returns the buffer delta, emptied, or nil if its capacity is above deltaKept.
func resetDelta(delta []byte) []byte {
	if cap(delta) > deltaKept {
		return nil
	}
	return delta[:0]
}

// These are the first bytes of the effects in the delta of a hash or a set.
const (
	// opNew adds a field with a value at the end.
	opNew = iota + 1
	// opUpdate changes the value of a field in its place.
	opUpdate
	// opGone removes a field.
	opGone
)
