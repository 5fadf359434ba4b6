package resp

import (
	"unsafe"

	"github.com/cellserver/cellserver/shared"
)

// A large collection is read while its shard is locked, and nobody else gets at the shard
// meanwhile. Copying the strings into the reply takes by far most of that time, so that
// the writer only notes where they are, and copies them when the lock is released. That
// takes strings that do not change in between (see collection.Hash.Pin).

// deferredSize is what a noted string takes until it is copied.
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

// Element writes a bulk string that the store has and keeps as it is while it is locked or
// pinned, which it is now. One that is long enough is referred to, not copied.
func (w *Writer) Element(b []byte) {
	if w.deferred != nil {
		w.note(b)
		return
	}
	if len(b) < shared.Least || w.Ledger == nil {
		w.Bulk(b)
		return
	}
	shared.Hold(b, w.Ledger)
	w.refer(shared.Held(b, w.Ledger))
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

// Cut takes back what was written since Buf was mark bytes long.
func (w *Writer) Cut(mark int) {
	if w.deferred != nil && mark <= w.deferred.mark {
		w.dropDeferred()
	}
	w.Buf = w.Buf[:mark]
	if len(w.Refs) == 0 {
		return
	}
	n := len(w.Refs)
	for ; n > 0 && w.Refs[n-1].At >= mark; n-- {
		w.Referred -= len(w.Refs[n-1].Bytes)
		w.Refs[n-1].Release()
	}
	w.Refs = w.Refs[:n]
	if n == 0 {
		w.spilled = 0
	}
}

func (w *Writer) endDeferred(d *deferred) {
	if d.counted > 0 {
		w.Pieces.Count(-d.counted)
	}
	d.done()
}
