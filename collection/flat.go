package collection

import (
	"encoding/binary"
	"unsafe"
)

// flat has the bytes of a small collection and knows whether it may change them. They belong to the
// caller until the first change, which copies them to a buffer of its own.
type flat struct {
	b     []byte
	owned bool
	// own is our buffer, kept for the next load.
	own []byte
}

// load reads b from now on.
func (f *flat) load(b []byte) { f.b, f.owned = b, false }

// drop releases the bytes and the buffer, because a tree has replaced them.
func (f *flat) drop() { *f = flat{} }

// gap replaces the n bytes at the offset by m undefined ones and returns those.
func (f *flat) gap(at, n, m int) []byte {
	if !f.owned {
		f.own = append(f.own[:0], f.b...)
		f.b, f.owned = f.own, true
	}
	old := len(f.b)
	if grow := m - n; grow > 0 {
		if cap(f.b)-old < grow {
			// Reserve room for more elements: a collection is built element by element.
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

// take makes b, which belongs to f, the bytes, and returns the buffer that is free now.
func (f *flat) take(b []byte) (free []byte) {
	free = f.own
	f.b, f.own, f.owned = b, b, true
	return free[:0]
}

// cut decodes a length and that many bytes at the beginning of b. ok is false if b ends before, or
// if the length has more bytes than needed, so that equal collections have equal bytes.
func cut(b []byte) (element, rest []byte, ok bool) {
	n, b, ok := cutUvarint(b)
	if !ok || n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}

// cutUvarint decodes an unsigned varint in its shortest form at the beginning of b.
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

// appendElement appends a length and the bytes.
func appendElement(dst, element []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(element))), element...)
}

// putElement writes a length and the bytes to the front of dst, and returns the rest
// of it.
func putElement(dst, element []byte) (rest []byte) {
	n := binary.PutUvarint(dst, uint64(len(element)))
	return dst[n+copy(dst[n:], element):]
}

// elementSize returns the size of a length and the bytes.
func elementSize(n int) int { return uvarintSize(uint64(n)) + n }

// uvarintSize returns the size of an unsigned varint.
func uvarintSize(n uint64) (size int) {
	for size = 1; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

// allocated returns about the memory that a slice or string of n bytes takes.
func allocated(n int) int64 {
	const step = 16
	return int64((n + step - 1) / step * step)
}

// bytesOf returns the bytes of a string, which must not be changed.
func bytesOf(s string) []byte {
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// bytesAsString returns a string of the same memory; it must not outlive a change of b.
func bytesAsString(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// deltaKept is the capacity of the largest delta buffer that is kept for the next delta.
const deltaKept = 4096

// resetDelta returns the buffer emptied, or none if it is large.
func resetDelta(delta []byte) []byte {
	if cap(delta) > deltaKept {
		return nil
	}
	return delta[:0]
}

// The effects in a delta of a hash or a set.
const (
	// opNew: the field, which is new, is at the end and has the value.
	opNew = iota + 1
	// opUpdate: the field has the value, where it is.
	opUpdate
	// opGone: the field is gone.
	opGone
)
