package reservation

import (
	"encoding/binary"

	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
)

// Link names the other keys of a reservation of several limits whose keys do not follow from the arguments
// of its settlement. The settlement names one key, which has the link.
type Link struct {
	Hash  idempotency.Hash
	Print uint32   // fingerprint of the call that made the reservation
	Keys  [][]byte // the other keys: at most [MaxKeys] - 1, with at most [MaxKeyBytes] bytes in all
}

// These are the bounds of a reservation whose keys are kept in a [Link].
const (
	// MaxKeys is the maximum number of keys of the reservation, and MaxKeyBytes the maximum number
	// of their bytes together.
	MaxKeys     = 16
	MaxKeyBytes = 64 << 10
)

// CheckKeys returns [ErrKeys] if keys, which are all keys of a reservation, are too many or too
// long.
func CheckKeys(keys [][]byte) error {
	n := 0
	for _, key := range keys {
		n += len(key)
	}
	if len(keys) > MaxKeys || n > MaxKeyBytes {
		return ErrKeys
	}
	return nil
}

// A link is stored among the holds, after that of its reservation, as a hold that is void and has neither a slot nor
// units, with flagLink. Its end is [limit.MaxInstant] while the reservation is live. When that has passed its time, the
// end is the instant until which it is remembered. A link is followed by
//
//	 4 bytes  length of what follows without the padding
//	for each key: its length as a varint, and the key
//	zeros up to a multiple of 16 bytes
const linkHead = 4

func isLink(hold []byte) bool { return hold[flagsAt]&flagLink != 0 }

// linkWidth returns the length of the link with which b begins. The result is larger than the
// length of b if b ends early.
func linkWidth(b []byte) int {
	if len(b) < holdSize+linkHead {
		return holdSize + unit
	}
	return holdSize + linkSize(binary.LittleEndian.Uint32(b[holdSize:]))
}

// linkSize returns the length of the stored form of names of n bytes, with head and padding.
func linkSize(n uint32) int { return (linkHead + int(n) + unit - 1) / unit * unit }

// validLink reports whether b begins with a valid link. b has at least holdSize bytes.
func validLink(b []byte) bool {
	if b[flagsAt] != flagLink|flagVoid || linkWidth(b) > len(b) {
		return false
	}
	for _, x := range b[slotAt:holdSize] {
		if x != 0 {
			return false
		}
	}
	n := binary.LittleEndian.Uint32(b[holdSize:])
	if n > MaxKeyBytes+MaxKeys*binary.MaxVarintLen32 {
		return false
	}
	names, count := b[holdSize+linkHead:holdSize+linkHead+int(n)], 0
	for ; len(names) > 0; count++ {
		size, head := binary.Uvarint(names)
		if head <= 0 || size > uint64(len(names)-head) {
			return false
		}
		names = names[head+int(size):]
	}
	return count < MaxKeys
}

// Keys appends the keys of the link at a position to dst. They refer to the section, and are valid until
// that changes.
func (s *Section) Keys(at int, dst [][]byte) [][]byte {
	b := s.holds[at+holdSize:]
	for names := b[linkHead : linkHead+binary.LittleEndian.Uint32(b)]; len(names) > 0; {
		size, head := binary.Uvarint(names)
		dst = append(dst, names[head:head+int(size)])
		names = names[head+int(size):]
	}
	return dst
}

// FindLink returns the position of the link of the reservation whose token has the hash h, and the
// fingerprint of its call.
func (s *Section) FindLink(h idempotency.Hash) (at int, print uint32, found bool) {
	for at := 0; at < len(s.holds); at += width(s.holds[at:]) {
		if b := s.holds[at:]; isLink(b) && idempotency.HashIn(b) == h {
			return at, binary.LittleEndian.Uint32(b[printAt:]), true
		}
	}
	return 0, 0, false
}

// AddLink adds l after the reservations. The reservation of l must be the last that was added; [Section.Add] has
// removed an older link of the same token.
func (s *Section) AddLink(l *Link) {
	from := len(s.holds)
	s.append(&Hold{Hash: l.Hash, Print: l.Print, End: limit.MaxInstant, Ready: limit.MinInstant, Void: true})
	s.holds[from+flagsAt] |= flagLink
	s.holds = append(s.holds, make([]byte, linkHead)...)
	for _, key := range l.Keys {
		s.holds = append(binary.AppendUvarint(s.holds, uint64(len(key))), key...)
	}
	n := uint32(len(s.holds) - from - holdSize - linkHead)
	binary.LittleEndian.PutUint32(s.holds[from+holdSize:], n)
	s.holds = append(s.holds, make([]byte, linkSize(n)-linkHead-int(n))...)
}

// EndLink removes the link of the token with the hash h, if there is one.
func (s *Section) EndLink(h idempotency.Hash) {
	if at, _, found := s.FindLink(h); found {
		s.remove(at)
	}
}

// maxLapsed is the maximum number of links whose reservations have passed their time. Every call on the key
// reads all links.
const maxLapsed = 1000

// boundLinks removes the oldest links whose reservations have passed their time, if there are too many.
func (s *Section) boundLinks() {
	lapsed := 0
	for at := 0; at < len(s.holds); at += width(s.holds[at:]) {
		if b := s.holds[at:]; isLink(b) && end(b) != limit.MaxInstant {
			lapsed++
		}
	}
	kept, at := 0, 0
	for lapsed > maxLapsed {
		b := s.holds[at:]
		n := width(b)
		if at += n; isLink(b) && end(b) != limit.MaxInstant {
			lapsed--
			continue
		}
		kept += copy(s.holds[kept:], b[:n])
	}
	s.holds = append(s.holds[:kept], s.holds[at:]...)
}
