package base

import (
	"slices"

	"github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/internal/buffer"
)

// Output is output that has not left yet: bytes of its own, and between them pieces that
// lie elsewhere. A connection that reads what it is sent has none.
type Output struct {
	B       []byte
	at      int    // b[:at] has been sent
	Held    int    // so many bytes at the end, and the pieces, wait for barrier
	Barrier uint64 // 0: nothing is held
	pieces  *pieces
}

// pieces are the references of a reply that have not been sent.
type pieces struct {
	refs []shared.Ref // their places are those in b
	sent int          // bytes of the first that have left
	kept int          // what they take: see [shared.Ref.Kept]
}

// OnDurable releases a reply that waited for its record: s may change it before it is sent.
func (o *Output) OnDurable(s transport.Session, is transport.Outcome) {
	from := len(o.B) - o.Held
	refs := o.TakeRefs()
	out, refs := Settle(s, is, o.B[from:len(o.B):len(o.B)], refs)
	o.B = append(o.B[:from], out...)
	o.Barrier, o.Held = 0, 0
	o.Refer(refs, from)
}

// Empty reports whether nothing is left to be sent.
func (o *Output) Empty() bool { return o.at == len(o.B) && o.pieces == nil }

// Waits reports whether there is something that may be sent.
func (o *Output) Waits() bool { return o.Held == 0 && o.Barrier == 0 && !o.Empty() }

// HasRefs reports whether pieces that lie elsewhere are still to be sent.
func (o *Output) HasRefs() bool { return o.pieces != nil }

// Next returns what is to be sent next of a reply without references, up to n bytes.
func (o *Output) Next(n int) []byte { return o.B[o.at:min(len(o.B), o.at+n)] }

// Kept is how much memory it takes.
func (o *Output) Kept() int {
	if o.pieces == nil {
		return len(o.B) - o.at
	}
	return len(o.B) - o.at + o.pieces.kept
}

// Counted reports whether it takes memory that its handler has made for it alone, and
// counts itself.
func (o *Output) Counted() bool {
	return o.pieces != nil && slices.ContainsFunc(o.pieces.refs, shared.Ref.Counted)
}

// Add appends p, with refs between its bytes. The buffer is cut to size: it may be
// waiting for minutes. If p is ours it is kept as it is, where that saves a copy.
func (o *Output) Add(p []byte, refs []shared.Ref, ours bool) {
	switch {
	case o.B == nil && ours:
		o.B, o.at = p, 0
		o.Refer(refs, 0)
		return
	case o.at > 0 || o.B == nil:
		o.compact(len(p))
	}
	o.B = append(o.B, p...)
	o.Refer(refs, len(o.B)-len(p))
}

// Refer takes over references whose places are those behind from bytes.
func (o *Output) Refer(refs []shared.Ref, from int) {
	if len(refs) == 0 {
		return
	}
	for i := range refs {
		refs[i].At += from
	}
	if o.pieces == nil {
		o.pieces = &pieces{refs: refs}
	} else {
		o.pieces.refs = append(o.pieces.refs, refs...)
	}
	for i := range refs {
		o.pieces.kept += refs[i].Kept()
	}
}

// TakeRefs hands the references back.
func (o *Output) TakeRefs() []shared.Ref {
	if o.pieces == nil {
		return nil
	}
	refs := o.pieces.refs
	o.pieces = nil
	return refs
}

// compact moves what is left of b to a buffer of its own with room for more bytes.
func (o *Output) compact(more int) {
	o.B = append(make([]byte, 0, len(o.B)-o.at+more), o.B[o.at:]...)
	if o.pieces != nil {
		for i := range o.pieces.refs {
			o.pieces.refs[i].At -= o.at
		}
	}
	o.at = 0
}

// Gather fills parts with what is to be sent next, up to limit bytes, and returns it with
// its length.
func (o *Output) Gather(parts [][]byte, limit int) (out [][]byte, n int) {
	at, refs, sent := o.at, []shared.Ref(nil), 0
	if o.pieces != nil {
		refs, sent = o.pieces.refs, o.pieces.sent
	}
	for len(parts) < cap(parts) && n < limit {
		var p []byte
		switch {
		case len(refs) == 0:
			p = o.B[at:]
			if len(p) == 0 {
				return parts, n
			}
			at = len(o.B)
		case refs[0].At > at:
			p = o.B[at:refs[0].At]
			at = refs[0].At
		default:
			p = refs[0].Bytes[sent:]
			refs, sent = refs[1:], 0
		}
		if p = p[:min(len(p), limit-n)]; len(p) > 0 {
			parts = append(parts, p)
			n += len(p)
		}
	}
	return parts, n
}

// Sent drops n bytes from the front, with the memory that they took: pieces one by one,
// of the buffer the front half when it is past.
func (o *Output) Sent(n int) {
	for o.pieces != nil {
		x := o.pieces
		if before := x.refs[0].At - o.at; n < before {
			break
		} else if before > 0 {
			n, o.at = n-before, x.refs[0].At
		}
		left := len(x.refs[0].Bytes) - x.sent
		if n < left {
			x.sent += n
			return
		}
		n -= left
		x.kept -= x.refs[0].Kept()
		x.refs[0].Release()
		if x.refs, x.sent = x.refs[1:], 0; len(x.refs) == 0 {
			o.pieces = nil
		}
	}
	o.at += n
	switch {
	case o.at == len(o.B) && o.pieces == nil:
		o.B, o.at = nil, 0
	case o.at >= buffer.KeptSize && o.at >= len(o.B)/2:
		o.compact(0)
	}
}

// Drop gives everything up.
func (o *Output) Drop() {
	shared.ReleaseAll(o.TakeRefs())
	*o = Output{}
}
