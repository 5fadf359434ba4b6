package dense

import (
	"bytes"
	"unsafe"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/shared"
)

// blobs holds the keys and values of entries that are too long for a record, in Go's heap. They are
// few and each is long, so that the garbage collector has little to do.
//
// Replies may refer to a value (package shared): meanwhile its bytes do not change, and a new value
// is stored elsewhere.
type blobs struct {
	list []blob
	free []uint32
	mem  *Memory
}

// blob is one entry. Its value was made by [shared.New].
type blob struct{ key, value []byte }

// blobOverhead is the memory of a blob beside its bytes: its place in the list.
const blobOverhead = int64(unsafe.Sizeof(blob{}))

// size returns the number of bytes of memory that the entry takes.
func (b *blob) size() int64 { return int64(cap(b.key)) + shared.Size(b.value) + blobOverhead }

// keep returns the value of e in memory of its own. If it has to be copied, the copy has room for
// more bytes to grow.
func keep(e *entry.Entry, more int) []byte {
	if e.Made {
		return e.Value
	}
	return shared.New(e.Value, more)
}

// add stores key and the value of e and returns the number of the new blob.
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

// set replaces the value of a blob by that of to. The new value may be the old one, a part or an
// extension of it: then it is already in place.
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

// remove removes a blob.
func (b *blobs) remove(i uint32) {
	e := &b.list[i]
	b.mem.AddObjects(-e.size())
	shared.Drop(e.value, b.mem)
	*e = blob{}
	b.free = append(b.free, i)
}

// Spare returns the spare capacity for a value of n bytes that has replaced another, an eighth, so
// that a value that grows steadily is not copied each time.
func Spare(n int) int { return n / 8 }
