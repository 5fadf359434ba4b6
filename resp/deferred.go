package resp

import (
	"unsafe"

	"github.com/cellserver/cellserver/shared"
)

// A large collection is read while its shard is locked, and in that time no other goroutine can use
// the shard. Most of the time would be spent on copying the strings into the reply. So the writer
// only notes the addresses of the strings, and copies them after the lock is released. The strings
// must not change in between (see collection.Hash.Pin).

// deferredSize is the number of bytes that a noted string takes until it is copied.
const deferredSize = int64(unsafe.Sizeof(deferredString{}))

// Defer makes [Writer.Element] note its strings instead of copying them, until
// [Writer.CopyDeferred]. n is the approximate number of these strings. Defer first copies strings
// that were noted before. It may be called only if Defers is set. The strings must not change until
// the writer calls done, which it does when it has copied or dropped them.
func (w *Writer) Defer(n int, done func()) {
	w.CopyDeferred()
	w.deferred = &deferred{strings: make([]deferredString, 0, n), mark: len(w.Buf), done: done}
	if w.Pieces != nil {
		w.deferred.counted = int64(n) * deferredSize
		w.Pieces.Count(w.deferred.counted)
	}
}

// note notes b as the next bulk string of the reply. It takes a reference to a long string.
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

// Element writes b, an element of a stored collection, as a bulk string. b must be locked or
// pinned, so that it does not change. A long string is referred to and not copied. After Defer,
// Element only notes b.
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

// CopyDeferred copies the strings that were noted since [Writer.Defer] to their places in the
// reply, and calls done of Defer. It does nothing without a Defer. No lock is needed.
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

// take returns the noted string and clears the pointer to it, so that the memory of a string that
// was removed from the keyspace is freed as soon as the string has been copied.
func (s *deferredString) take() []byte {
	b := unsafe.Slice(s.bytes, s.size)
	s.bytes = nil
	return b
}

// dropDeferred drops the noted strings and calls done of Defer.
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

// Cut removes everything that was written since Buf was mark bytes long, including references and
// noted strings. While strings are noted, mark must not be greater than the length at the Defer.
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

// endDeferred subtracts from Pieces the bytes that were counted for d, and calls done of Defer.
func (w *Writer) endDeferred(d *deferred) {
	if d.counted > 0 {
		w.Pieces.Count(-d.counted)
	}
	d.done()
}
