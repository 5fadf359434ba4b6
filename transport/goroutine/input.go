package goroutine

import "github.com/cellserver/cellserver/transport/internal/buffer"

// smallInput is what an idle connection keeps to read into. It holds a few short
// commands; a client that sends more gets a larger buffer meanwhile.
const smallInput = 512

// input is what a connection has received and its session has not consumed.
type input struct {
	small    [smallInput]byte
	borrowed *buffer.Buffer // nil while small suffices
	r, w     int            // the unconsumed bytes are [r:w] of the buffer
	filled   bool           // the last read filled the buffer: more is likely to come
}

func (in *input) buf() []byte {
	if in.borrowed != nil {
		return in.borrowed.B
	}
	return in.small[:]
}

func (in *input) bytes() []byte { return in.buf()[in.r:in.w] }
func (in *input) len() int      { return in.w - in.r }
func (in *input) large() bool   { return in.borrowed != nil }

// room returns where to read to: not more than chunk, and not so much that the
// input exceeds limit, which it must not have reached yet.
func (in *input) room(limit, chunk int) []byte {
	buf, held := in.buf(), in.len()
	want := len(buf)
	if in.filled {
		want = max(want, min(4*want, chunk))
	}
	if held > want-want/4 {
		want *= 2
	}
	switch {
	case want > len(buf):
		in.grow(want)
	case in.r > 0 && len(buf)-in.w < len(buf)/2:
		copy(buf, buf[in.r:in.w])
		in.r, in.w = 0, held
	}
	buf = in.buf()
	return buf[in.w:min(len(buf), in.w+chunk, in.w+limit-held)]
}

// grow moves the input to a buffer of at least n bytes.
func (in *input) grow(n int) {
	held := in.len()
	if in.borrowed == nil {
		in.borrowed = buffer.GetInput(n)
		copy(in.borrowed.B, in.small[in.r:in.w])
	} else {
		in.borrowed = in.borrowed.Lengthen(in.r, in.w, n)
	}
	in.r, in.w = 0, held
}

// added notes that n bytes have been read into the room.
func (in *input) added(n int) {
	in.w += n
	in.filled = in.w == len(in.buf())
}

// consumed drops n bytes from the front. A buffer larger than the pools keep is
// only held for as long as there is something in it.
func (in *input) consumed(n int) {
	in.r += n
	if in.r < in.w {
		return
	}
	if in.borrowed != nil && cap(in.borrowed.B) > buffer.KeptSize {
		in.release()
	}
	in.r, in.w = 0, 0
}

// shrink goes back to the small buffer if what is there fits.
func (in *input) shrink() {
	if in.borrowed == nil || in.len() > smallInput/2 {
		return
	}
	held := copy(in.small[:], in.bytes())
	in.borrowed.GiveBack(in.w)
	in.borrowed, in.r, in.w, in.filled = nil, 0, held, false
}

// release lets go of everything.
func (in *input) release() {
	if in.borrowed != nil {
		in.borrowed.GiveBack(in.w)
	}
	in.borrowed, in.r, in.w, in.filled = nil, 0, 0, false
}
