package resp

import (
	"slices"
	"unsafe"

	"github.com/cellserver/cellserver/shared"
)

// A reply may have pieces outside of Buf (package shared): long values of the store, long strings
// that a script returns, and finished pieces of a long reply. They are in Refs, in order, each with
// its position in Buf. A piece is never the very end of a reply, since its line end follows it in
// Buf.

// Lent writes a bulk string of the bytes of r, and takes over the caller's reference.
func (w *Writer) Lent(r shared.Ref) {
	if len(r.Bytes) < shared.Least || w.Ledger == nil {
		w.Bulk(r.Bytes)
		r.Release()
		return
	}
	w.refer(r)
}

// BulkString is Bulk for a string. A long string is referred to if the writer has a Ledger, since a
// string never changes.
func (w *Writer) BulkString(s string) {
	if !w.Refers(len(s)) {
		w.shortString(s)
		return
	}
	if w.Pieces != nil {
		w.Pieces.Count(int64(len(s)))
	}
	w.refer(shared.Own(unsafe.Slice(unsafe.StringData(s), len(s)), w.Pieces, int64(len(s))))
}

// Verbatim writes text for users, with its format: "txt" or "mkd". A format of another length is
// cut or padded with spaces to the three bytes that RESP3 requires. In RESP2 the text is a bulk
// string.
func (w *Writer) Verbatim(format, text string) {
	if !w.resp3() {
		w.BulkString(text)
		return
	}
	w.aggregate('=', len(text)+4)
	for i := range 3 {
		c := byte(' ')
		if i < len(format) {
			c = format[i]
		}
		w.Buf = append(w.Buf, c)
	}
	w.Buf = append(w.Buf, ':')
	w.Buf = append(w.Buf, text...)
	w.Buf = append(w.Buf, '\r', '\n')
}

// Refers reports whether a string or value of n bytes is referred to, not copied.
func (w *Writer) Refers(n int) bool { return n >= shared.Least && w.Ledger != nil }

// refer writes a bulk string of what r refers to.
func (w *Writer) refer(r shared.Ref) {
	w.aggregate('$', len(r.Bytes))
	r.At = len(w.Buf)
	w.Refs = append(w.Refs, r)
	w.Referred += len(r.Bytes)
	w.Buf = append(w.Buf, '\r', '\n')
}

// Size returns the memory of the reply since Buf was mark bytes long, which is also the work of
// sending it. The bytes of values in the store do not count.
func (w *Writer) Size(mark int) int {
	return len(w.Buf) - mark + len(w.Refs)*shared.RefSize + w.spilled
}

// Length returns the length on the wire of everything that was written.
func (w *Writer) Length() int { return len(w.Buf) + w.Referred }

// Take returns everything that was written, which then belongs to the caller, and empties the
// writer.
func (w *Writer) Take() Reply {
	r := Reply{Buf: w.Buf, Refs: w.Refs, referred: w.Referred}
	w.Buf, w.Refs, w.Referred, w.spilled = nil, nil, 0, 0
	return r
}

// Reply is what a Writer has written.
type Reply struct {
	Buf      []byte
	Refs     []shared.Ref
	referred int
}

// Release releases a reply that is not sent.
func (r *Reply) Release() {
	shared.ReleaseAll(r.Refs)
	*r = Reply{}
}

// Reply appends the reply of another writer, and takes it over. A long reply becomes the writer's
// buffer, if that is empty: then kept is true, otherwise the caller may reuse r.Buf.
func (w *Writer) Reply(r Reply) (kept bool) {
	mark := len(w.Buf)
	if kept = mark == 0 && len(r.Buf) > cap(w.Buf); kept {
		w.Buf = r.Buf // copying megabytes would block the event loop
	} else {
		w.Raw(r.Buf)
	}
	for i := range r.Refs {
		r.Refs[i].At += mark
	}
	if len(w.Refs) == 0 {
		w.Refs = r.Refs
	} else {
		w.Refs = append(w.Refs, r.Refs...)
	}
	w.Referred += r.referred
	return kept
}

// pieceSize is the approximate length of a finished piece of a long reply. Pieces are freed one by
// one as they are sent.
const pieceSize = 256 << 10

// Spill makes finished pieces of what was written since Buf was mark bytes long, once that is much.
// So a long reply is never copied to a larger buffer, and its memory is freed as it is sent. Pieces
// counts their memory until it is freed. Afterwards Cut may only remove everything since mark or an
// earlier mark.
func (w *Writer) Spill(mark int) {
	if len(w.Buf)-mark > pieceSize && w.deferred == nil {
		w.spill(mark, pieceSize+pieceSize/4)
	}
}

// leastRest is the minimum length of the end of a long reply for which a piece is made.
const leastRest = 64 << 10

// SpillRest is Spill for the end of a reply.
func (w *Writer) SpillRest(mark int) {
	if w.Pieces != nil && len(w.Buf)-mark > leastRest {
		w.spill(mark, 0)
	}
}

// spill makes a piece, and leaves room bytes of capacity behind the rest of Buf.
func (w *Writer) spill(mark, room int) {
	if cap(w.Buf) <= w.Room {
		return // the memory belongs to another owner
	}
	const tail = 2 // of the last line: see above
	end := len(w.Buf) - tail
	first := len(w.Refs)
	for first > 0 && w.Refs[first-1].At > mark {
		first--
	}
	refs := slices.Clone(w.Refs[first:])
	w.Refs = w.Refs[:first]
	from := mark
	for _, r := range refs {
		w.piece(w.Buf[from:r.At], mark)
		from = r.At
		r.At = mark
		w.Refs = append(w.Refs, r)
	}
	w.piece(w.Buf[from:end], mark)
	fresh := append(make([]byte, 0, mark+tail+room), w.Buf[:mark]...)
	w.Buf = append(fresh, w.Buf[end:]...)
}

// piece adds a reference to finished bytes behind the first at bytes of Buf.
func (w *Writer) piece(b []byte, at int) {
	r := shared.Own(b, w.Pieces, int64(len(b)))
	r.At = at
	w.Pieces.Count(int64(len(b)))
	w.Refs = append(w.Refs, r)
	w.Referred += len(b)
	w.spilled += len(b)
}
