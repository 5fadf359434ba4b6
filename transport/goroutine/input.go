package goroutine

import "github.com/cellserver/cellserver/transport/internal/buffer"

// smallInput is the size of the read buffer of an idle connection. It holds a few short commands. A
// client that sends more gets a larger buffer meanwhile.
const smallInput = 512

// input holds the bytes that a connection has received and its session has not consumed.
type input struct {
	small    [smallInput]byte
	borrowed *buffer.Buffer // the large buffer; nil while small suffices
	r, w     int            // offsets in the buffer at which the unconsumed bytes begin and end
	filled   bool           // the last read filled the buffer, so more bytes are likely to come
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

// room returns the space to read into: at most chunk bytes, and no more than limit allows. The
// input must be below limit.
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

// consumed drops n bytes from the front. An empty buffer larger than KeptSize is released.
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

// shrink returns to the small buffer if the input fits into half of it.
func (in *input) shrink() {
	if in.borrowed == nil || in.len() > smallInput/2 {
		return
	}
	held := copy(in.small[:], in.bytes())
	in.borrowed.GiveBack(in.w)
	in.borrowed, in.r, in.w, in.filled = nil, 0, held, false
}

// release drops all input and releases the buffer.
func (in *input) release() {
	if in.borrowed != nil {
		in.borrowed.GiveBack(in.w)
	}
	in.borrowed, in.r, in.w, in.filled = nil, 0, 0, false
}
