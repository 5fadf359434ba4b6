package resp

import (
	"slices"
	"unsafe"

	"github.com/cellserver/cellserver/shared"
)

// A reply may have pieces that lie elsewhere (package shared): long values of the store,
// long strings that a script returns, and finished pieces of a reply that is long as a
// whole. They are in Refs, in order, each with its place in Buf. A piece never stands at
// the very end of a reply, since its line end follows it in Buf.

// Lent writes a bulk string whose bytes the caller has a reference to, and no use for
// any more.
func (w *Writer) Lent(r shared.Ref) {
	if len(r.Bytes) < shared.Least || w.Ledger == nil {
		w.Bulk(r.Bytes)
		r.Release()
		return
	}
	w.refer(r)
}

// BulkString is Bulk for a string. One that is long is referred to where the writer has
// a Ledger: a string never changes.
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

// Verbatim writes text meant for people, with its format: "txt" or "mkd". A
// format of another length is cut or filled with spaces to the three bytes that
// RESP3 demands. On RESP2 the text is a bulk string.
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

// Size is what a reply takes of memory since Buf was mark bytes long, and of the work of
// sending it; the bytes of values in the store do not count.
func (w *Writer) Size(mark int) int {
	return len(w.Buf) - mark + len(w.Refs)*shared.RefSize + w.spilled
}

// Length is how many bytes everything that was written will be on the wire.
func (w *Writer) Length() int { return len(w.Buf) + w.Referred }

// Take returns all that was written, which belongs to the caller, and forgets it.
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

// Release gives up a reply that is not sent.
func (r *Reply) Release() {
	shared.ReleaseAll(r.Refs)
	*r = Reply{}
}

// Reply writes what another writer has written, and takes it over. A long one becomes
// the writer's own, if that has nothing yet: kept says so, else r.Buf is free again.
func (w *Writer) Reply(r Reply) (kept bool) {
	mark := len(w.Buf)
	if kept = mark == 0 && len(r.Buf) > cap(w.Buf); kept {
		w.Buf = r.Buf // copying megabytes would hold the loop up
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

// pieceSize is how long a finished piece of a long reply is, about. Pieces are freed
// one by one as they are sent.
const pieceSize = 256 << 10

// Spill makes finished pieces of what was written since Buf was mark bytes long, once that
// is much, so that a long reply is never copied to a larger buffer, and its memory is freed
// as it is sent. Pieces is told what they take, and when they are free. Nothing may be cut
// back after that but all since mark or before.
func (w *Writer) Spill(mark int) {
	if len(w.Buf)-mark > pieceSize && w.deferred == nil {
		w.spill(mark, pieceSize+pieceSize/4)
	}
}

// leastRest is how much of the end of a long reply is worth a piece.
const leastRest = 64 << 10

// SpillRest is Spill for the end of a reply.
func (w *Writer) SpillRest(mark int) {
	if w.Pieces != nil && len(w.Buf)-mark > leastRest {
		w.spill(mark, 0)
	}
}

// spill leaves room for so many bytes behind those that Buf still has then.
func (w *Writer) spill(mark, room int) {
	if cap(w.Buf) <= w.Room {
		return // the memory is somebody else's
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

// piece refers to finished bytes behind the first at of Buf.
func (w *Writer) piece(b []byte, at int) {
	r := shared.Own(b, w.Pieces, int64(len(b)))
	r.At = at
	w.Pieces.Count(int64(len(b)))
	w.Refs = append(w.Refs, r)
	w.Referred += len(b)
	w.spilled += len(b)
}
