package base

import (
	"slices"

	"github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/internal/buffer"
)

// Output is unsent output: bytes of its own, and between them pieces of memory elsewhere. The
// output of a connection whose client reads all replies at once is empty.
type Output struct {
	B       []byte
	at      int    // number of bytes of B that have been sent
	Held    int    // number of bytes at the end of B that wait for Barrier, as do all pieces
	Barrier uint64 // log position that must be durable before the held output is sent; 0 for none
	pieces  *pieces
}

// pieces are the unsent references of a reply.
type pieces struct {
	refs []shared.Ref // the references; their positions are offsets in B
	sent int          // number of bytes of the first reference that have been sent
	kept int          // memory in bytes that the references take: see [shared.Ref.Kept]
}

// OnDurable makes a reply that waited for its log record ready to be sent. The outcome is not
// Pending. The session s may change the reply before it is sent.
func (o *Output) OnDurable(s transport.Session, is transport.Outcome) {
	from := len(o.B) - o.Held
	refs := o.TakeRefs()
	out, refs := Settle(s, is, o.B[from:len(o.B):len(o.B)], refs)
	o.B = append(o.B[:from], out...)
	o.Barrier, o.Held = 0, 0
	o.Refer(refs, from)
}

// Empty reports whether everything has been sent.
func (o *Output) Empty() bool { return o.at == len(o.B) && o.pieces == nil }

// Waits reports whether there is output that may be sent now.
func (o *Output) Waits() bool { return o.Held == 0 && o.Barrier == 0 && !o.Empty() }

// HasRefs reports whether there are unsent pieces of memory elsewhere.
func (o *Output) HasRefs() bool { return o.pieces != nil }

// Next returns the next bytes to send of a reply without references, up to n bytes.
func (o *Output) Next(n int) []byte { return o.B[o.at:min(len(o.B), o.at+n)] }

// Kept returns the number of bytes of memory that the output takes.
func (o *Output) Kept() int {
	if o.pieces == nil {
		return len(o.B) - o.at
	}
	return len(o.B) - o.at + o.pieces.kept
}

// Counted reports whether the output refers to memory that belongs to this output alone and that the
// handler counts: see [shared.Ref.Counted].
func (o *Output) Counted() bool {
	return o.pieces != nil && slices.ContainsFunc(o.pieces.refs, shared.Ref.Counted)
}

// Add appends p, with refs between its bytes. It allocates a buffer of the exact size, because the
// output may wait for minutes. If ours is set, p belongs to the transport, and Add keeps it without
// a copy if possible.
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

// Refer becomes the owner of references. Their positions count from the offset from of B.
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

// TakeRefs removes and returns the references.
func (o *Output) TakeRefs() []shared.Ref {
	if o.pieces == nil {
		return nil
	}
	refs := o.pieces.refs
	o.pieces = nil
	return refs
}

// compact moves the unsent bytes to a new buffer with room for more bytes.
func (o *Output) compact(more int) {
	o.B = append(make([]byte, 0, len(o.B)-o.at+more), o.B[o.at:]...)
	if o.pieces != nil {
		for i := range o.pieces.refs {
			o.pieces.refs[i].At -= o.at
		}
	}
	o.at = 0
}

// Gather appends the next pieces to send to parts, up to the capacity of parts and up to limit
// bytes. It returns the new slice and the number of bytes in the appended pieces.
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

// Sent removes n bytes from the front and releases their memory: each piece as soon as it has been
// sent, and the sent part of B once that part is at least half of B and at least KeptSize bytes
// long.
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

// Drop discards all output.
func (o *Output) Drop() {
	shared.ReleaseAll(o.TakeRefs())
	*o = Output{}
}
