package resp

import (
	"unsafe"

	"github.com/cellserver/cellserver/shared"
)

// A large collection is read while its shard is locked, and nobody else gets at the shard
// meanwhile. Copying the strings into the reply takes by far most of that time, so that
// the writer only notes where they are, and copies them when the lock is released. That
// takes strings that do not change in between (see collection.Hash.Pin).

// deferred are strings that have been written and have yet to be copied.
type deferred struct {
	strings []deferredString
	mark    int // where the first may be in Buf
	size    int // what they will add to Size
	counted int64
	done    func()
}

// deferredString is one of them. It is as small as it can be, since a hundred thousand are
// noted while a shard is locked.
type deferredString struct {
	bytes *byte
	size  uint32
	at    uint32 // where it comes in Buf
}

// deferredSize is what one of them takes until it is copied.
const deferredSize = int64(unsafe.Sizeof(deferredString{}))

// Defer has [Writer.Element] note its strings, about n, until [Writer.CopyDeferred], which
// the owner of the writer calls if Defers says so. They must stay as they are until done is
// called.
func (w *Writer) Defer(n int, done func()) {
	w.CopyDeferred()
	w.deferred = &deferred{strings: make([]deferredString, 0, n), mark: len(w.Buf), done: done}
	if w.Pieces != nil {
		w.deferred.counted = int64(n) * deferredSize
		w.Pieces.Count(w.deferred.counted)
	}
}

// note is Element for a string that is copied later. One that is long is referred to from
// now on.
func (w *Writer) note(b []byte) {
	d, size := w.deferred, BulkSize(len(b))
	if w.Refers(len(b)) {
		shared.Hold(b, w.Ledger)
		size += shared.RefSize - len(b)
	}
	d.strings = append(d.strings, deferredString{unsafe.SliceData(b), uint32(len(b)), uint32(len(w.Buf))})
	d.size += size
	w.spilled += size
}

// CopyDeferred copies the strings that have been noted to where they belong.
func (w *Writer) CopyDeferred() {
	d := w.deferred
	if d == nil {
		return
	}
	defer w.endDeferred(d)
	w.deferred = nil
	w.spilled -= d.size
	all, from := w.Buf, d.mark
	w.Buf = append(make([]byte, 0, d.mark+min(d.size+len(all)-d.mark, pieceSize+pieceSize/4)), all[:d.mark]...)
	for i := range d.strings {
		s := &d.strings[i]
		w.Raw(all[from:s.at])
		from = int(s.at)
		if b := s.take(); w.Refers(len(b)) {
			w.refer(shared.Held(b, w.Ledger))
		} else {
			w.Bulk(b)
		}
		if w.Pieces != nil {
			w.Spill(d.mark)
		}
	}
	w.Raw(all[from:])
}

// take returns the string and forgets it, so that its memory is free as soon as it has been
// copied if it has left the store.
func (s *deferredString) take() []byte {
	b := unsafe.Slice(s.bytes, s.size)
	s.bytes = nil
	return b
}

// dropDeferred forgets the strings that were noted.
func (w *Writer) dropDeferred() {
	d := w.deferred
	w.deferred = nil
	w.spilled -= d.size
	for i := range d.strings {
		if b := d.strings[i].take(); w.Refers(len(b)) {
			r := shared.Held(b, w.Ledger)
			r.Release()
		}
	}
	w.endDeferred(d)
}

func (w *Writer) endDeferred(d *deferred) {
	if d.counted > 0 {
		w.Pieces.Count(-d.counted)
	}
	d.done()
}
