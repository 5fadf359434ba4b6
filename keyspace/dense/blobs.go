package dense

import (
	"bytes"
	"unsafe"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/shared"
)

// blobs has the keys and values of entries that are too long for a record, in Go's heap. Such
// entries are few and long, so that the garbage collector has little to do.
//
// Replies may refer to a value (package shared). While they do, the bytes of the value do not
// change, and a new value is stored elsewhere.
type blobs struct {
	list []blob
	free []uint32 // the free numbers of list
	mem  *Memory
}

// blob has the key and the value of one entry. The value was made by [shared.New].
type blob struct{ key, value []byte }

// blobOverhead is the number of bytes that a blob takes in addition to its key and value: its place
// in the list.
const blobOverhead = int64(unsafe.Sizeof(blob{}))

// size returns the number of bytes of memory that b takes.
func (b *blob) size() int64 { return int64(cap(b.key)) + shared.Size(b.value) + blobOverhead }

// keep returns the value of e in memory that belongs to the table: the value itself if e.Made is
// set, otherwise a copy with room to grow by more bytes.
func keep(e *entry.Entry, more int) []byte {
	if e.Made {
		return e.Value
	}
	return shared.New(e.Value, more)
}

// add stores a copy of key and the value of e, and returns the number of the new blob.
func (b *blobs) add(key []byte, e *entry.Entry) uint32 {
	fresh := blob{key: bytes.Clone(key), value: keep(e, 0)}
	b.mem.AddObjects(fresh.size())
	if n := len(b.free); n > 0 {
		i := b.free[n-1]
		b.free = b.free[:n-1]
		b.list[i] = fresh
		return i
	}
	b.list = append(b.list, fresh)
	return uint32(len(b.list) - 1)
}

// set replaces the value of blob i with the value of the argument to. The new value takes the
// memory of the old one in two cases: it begins at the same address, so that its bytes are already
// in place; or it fits, and no reply refers to the old value. In all other cases it is stored
// elsewhere. It is also stored elsewhere if to.Made is set, or if it is shorter than a quarter of
// the old capacity.
func (b *blobs) set(i uint32, to *entry.Entry) {
	e, value, n := &b.list[i], to.Value, len(to.Value)
	switch {
	case to.Made, n < cap(e.value)/4:
	case unsafe.SliceData(value) == unsafe.SliceData(e.value):
		e.value = value
		return
	case n <= cap(e.value) && !shared.Busy(e.value):
		e.value = append(e.value[:0], value...)
		return
	}
	fresh := keep(to, Spare(n))
	b.mem.AddObjects(shared.Size(fresh) - shared.Size(e.value))
	shared.Drop(e.value, b.mem)
	e.value = fresh
}

// remove removes blob i and gives its memory back, once no reply refers to the value.
func (b *blobs) remove(i uint32) {
	e := &b.list[i]
	b.mem.AddObjects(-e.size())
	shared.Drop(e.value, b.mem)
	*e = blob{}
	b.free = append(b.free, i)
}

// Spare returns the spare capacity in bytes for a value of n bytes that has replaced another. It is
// an eighth of n, so that a value that grows steadily is not copied each time.
func Spare(n int) int { return n / 8 }
