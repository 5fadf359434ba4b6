package resp

import (
	"slices"
	"unsafe"

	"github.com/cellserver/cellserver/shared"
)

// A reply may have pieces outside of Buf (package shared): long stored values, long strings that a
// script returns, and finished pieces of a long reply. Refs has these pieces in order, each with
// its offset in Buf. A piece is never the very end of a reply, since its line end follows in Buf.

// Lent writes the bytes of r as a bulk string, and becomes the owner of the reference r, which the
// caller gives up. If the bytes are short or the writer has no Ledger, they are copied, and then r
// is released.
func (w *Writer) Lent(r shared.Ref) {
	if len(r.Bytes) < shared.Least || w.Ledger == nil {
		w.Bulk(r.Bytes)
		r.Release()
		return
	}
	w.refer(r)
}

// BulkString writes s as a bulk string. If the writer has a Ledger, a long string is referred to
// and not copied, since a string never changes.
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

// Verbatim writes text, which is meant for users, as a verbatim string. format is "txt" or "mkd";
// it is cut or padded with spaces to the three bytes that RESP3 requires. In RESP2 the text is a
// bulk string, without the format.
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

// Refers reports whether the writer refers to a string or value of n bytes instead of copying it.
func (w *Writer) Refers(n int) bool { return n >= shared.Least && w.Ledger != nil }

// refer writes the bytes of r as a bulk string that refers to them.
func (w *Writer) refer(r shared.Ref) {
	w.aggregate('$', len(r.Bytes))
	r.At = len(w.Buf)
	w.Refs = append(w.Refs, r)
	w.Referred += len(r.Bytes)
	w.Buf = append(w.Buf, '\r', '\n')
}

// Size returns about the number of bytes of memory that the replies since Buf was mark bytes long
// take, which is also a measure for the work of sending them. References count with
// [shared.RefSize], and stored values to which they refer do not count. Noted strings and finished
// pieces count.
func (w *Writer) Size(mark int) int {
	return len(w.Buf) - mark + len(w.Refs)*shared.RefSize + w.spilled
}

// Length returns the number of bytes that the replies written so far have when they are sent. Noted
// strings do not count.
func (w *Writer) Length() int { return len(w.Buf) + w.Referred }

// Take returns everything that was written, and empties the writer. The reply, including its memory
// and references, then belongs to the caller.
func (w *Writer) Take() Reply {
	r := Reply{Buf: w.Buf, Refs: w.Refs, referred: w.Referred}
	w.Buf, w.Refs, w.Referred, w.spilled = nil, nil, 0, 0
	return r
}

// Reply holds the output of a [Writer]: encoded replies in Buf, and pieces outside of Buf in Refs.
// It must be passed to [Writer.Reply] or released.
type Reply struct {
	Buf      []byte
	Refs     []shared.Ref
	referred int
}

// Release releases the references of a reply that is not sent, and empties it.
func (r *Reply) Release() {
	shared.ReleaseAll(r.Refs)
	*r = Reply{}
}

// Reply appends r, which another writer has written, and becomes the owner of its references. If w
// has written nothing and r is longer than the capacity of w.Buf, r.Buf becomes w.Buf without a
// copy, and kept is true. Otherwise the caller may reuse r.Buf.
func (w *Writer) Reply(r Reply) (kept bool) {
	mark := len(w.Buf)
	if kept = mark == 0 && len(r.Buf) > cap(w.Buf); kept {
		w.Buf = r.Buf // Buf is replaced, because copying megabytes would block the event loop
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

// pieceSize is the approximate number of bytes of a finished piece of a long reply. Pieces are
// freed one by one as they are sent.
const pieceSize = 256 << 10

// Spill makes finished pieces of the bytes that were written since Buf was mark bytes long, if they
// are more than 256 KiB. So a long reply is never copied to a larger buffer, and its memory is
// freed as the reply is sent. w.Pieces, which must be set, counts the memory of the pieces until it
// is freed. Afterwards [Writer.Cut] may be called only with mark or an earlier mark.
func (w *Writer) Spill(mark int) {
	if len(w.Buf)-mark > pieceSize && w.deferred == nil {
		w.spill(mark, pieceSize+pieceSize/4)
	}
}

// leastRest is the number of bytes that the end of a long reply must exceed to become a piece.
const leastRest = 64 << 10

// SpillRest does at the end of a reply what [Writer.Spill] does: it makes a piece of the rest if
// that has more than 64 KiB. It does nothing without w.Pieces.
func (w *Writer) SpillRest(mark int) {
	if w.Pieces != nil && len(w.Buf)-mark > leastRest {
		w.spill(mark, 0)
	}
}

// spill makes pieces of the bytes that were written since Buf was mark bytes long, except for the
// last line end. Then Buf has new memory with a capacity of room more bytes. spill does nothing if
// the memory of Buf belongs to another owner.
func (w *Writer) spill(mark, room int) {
	if cap(w.Buf) <= w.Room {
		return // the memory of Buf belongs to another owner
	}
	const tail = 2 // length of the line end of the last piece: see Refs
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

// piece makes b a finished piece, at the offset at of Buf, and counts it in Pieces.
func (w *Writer) piece(b []byte, at int) {
	r := shared.Own(b, w.Pieces, int64(len(b)))
	r.At = at
	w.Pieces.Count(int64(len(b)))
	w.Refs = append(w.Refs, r)
	w.Referred += len(b)
	w.spilled += len(b)
}
