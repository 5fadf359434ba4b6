package epoll

import "github.com/cellserver/cellserver/transport/internal/buffer"

// smallRest is the number of unconsumed bytes up to which they are copied in front of the next
// read, so that the read has a whole chunk of room. More bytes stay in the connection's own buffer,
// and the read appends to them.
const smallRest = buffer.MinSize

// unread is input that is kept between two turns. An idle connection has none.
type unread struct {
	borrowed *buffer.Buffer
	r, w     int // offsets in the buffer at which the unread bytes begin and end
}

func (in *unread) len() int { return in.w - in.r }

// size returns the memory that the buffer takes.
func (in *unread) size() int32 {
	if in.borrowed == nil {
		return 0
	}
	return int32(in.borrowed.Size(in.w))
}

func (in *unread) bytes() []byte {
	if in.borrowed == nil {
		return nil
	}
	return in.borrowed.B[in.r:in.w]
}

// keep replaces the input by a copy of p, which must not be empty.
func (in *unread) keep(p []byte) {
	in.drop()
	in.borrowed = buffer.GetInput(len(p))
	in.r, in.w = 0, copy(in.borrowed.B, p)
}

// consumed drops n bytes from the front, and gives the buffer back if nothing is left.
func (in *unread) consumed(n int) {
	in.r += n
	if in.r >= in.w {
		in.drop()
	}
}

func (in *unread) drop() {
	if in.borrowed != nil {
		in.borrowed.GiveBack(in.w)
		in.borrowed, in.r, in.w = nil, 0, 0
	}
}

// room returns space for up to chunk bytes after the input, without exceeding limit. The input must
// be below limit.
func (in *unread) room(limit, chunk int) []byte {
	held := in.len()
	switch {
	case in.borrowed == nil:
		in.borrowed = buffer.GetInput(4 * buffer.MinSize)
	case len(in.borrowed.B)-held < len(in.borrowed.B)/4:
		in.borrowed = in.borrowed.Lengthen(in.r, in.w, max(2*held, 4*buffer.MinSize))
	case in.r > 0:
		in.borrowed.Size(in.w)
		copy(in.borrowed.B, in.bytes())
	}
	in.r, in.w = 0, held
	b := in.borrowed.B
	return b[in.w:min(len(b), in.w+chunk, in.w+limit-held)]
}
