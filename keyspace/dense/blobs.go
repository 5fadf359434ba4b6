package dense

import (
	"bytes"
	"unsafe"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/shared"
)

// blobs holds what is too long for a record: the key and the value of an entry, in
// memory of Go's own. There are few of them and each is long, so that the collector
// has little to do.
//
// Replies may refer to a value (package shared): while one does, its bytes stay what
// they are, and whatever replaces them is stored elsewhere.
type blobs struct {
	list []blob
	free []uint32
	mem  *Memory
}

// blob is one entry. Its value was made by [shared.New].
type blob struct{ key, value []byte }

// blobOverhead is what a blob takes beside its bytes: its place in the list.
const blobOverhead = int64(unsafe.Sizeof(blob{}))

// size is how much memory the entry takes.
func (b *blob) size() int64 { return int64(cap(b.key)) + shared.Size(b.value) + blobOverhead }

// keep returns the value of e in memory of its own, with room for more bytes if it has to
// be copied there.
func keep(e *entry.Entry, more int) []byte {
	if e.Made {
		return e.Value
	}
	return shared.New(e.Value, more)
}

// add keeps key and the value of e and returns the blob's number.
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

// set replaces the value of a blob by that of to. It may be (a part or an extension of)
// the one that the blob has: then it lies where it has to.
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

// remove forgets a blob.
func (b *blobs) remove(i uint32) {
	e := &b.list[i]
	b.mem.AddObjects(-e.size())
	shared.Drop(e.value, b.mem)
	*e = blob{}
	b.free = append(b.free, i)
}

// Spare is what a value of n bytes that has replaced another gets to grow, an eighth, so
// that one which grows steadily is not copied each time.
func Spare(n int) int { return n / 8 }
