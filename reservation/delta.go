package reservation

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// These are the flags of the delta of a limiter with reservations, which has deltas of all its parts. A
// delta without DeltaMark is one of package idempotency. The format is:
//
//	flags         a byte: DeltaMark, and DeltaRecords if a delta of the records follows, DeltaWhole if
//	              the state follows as a whole, DeltaPart if a delta of the state follows
//	reservations  what [Section.AppendDelta] appends
//	records       with DeltaRecords: its length as a varint, and the delta of package idempotency,
//	              without a state
//	state         with DeltaWhole or DeltaPart: the rest
const (
	DeltaRecords = 1
	DeltaWhole   = 2
	DeltaPart    = 4
	DeltaMark    = 16
)

// A delta describes the change of a section. It is absolute for each reservation, so that applying it
// twice, or to a newer section, is harmless once the later deltas have been applied, too:
//
//	a byte: 1 [Section.Short], 2 the start follows
//	8 bytes, the start, with flag 2; otherwise it is 0
//	8 bytes, [Section.Until]
//	three varints: the time for which ended reservations are remembered in milliseconds, the maximum
//	number of calls that the key remembers, and the number of the next reservation
//	any number of changes: a byte, and
//	    1 the reservation is new or has changed: its stored form
//	    2 only its fold or Back has changed: varint, its number, and 16 bytes
//	    3 it has ended: varint, its number
//	0, a byte
const (
	deltaEnd     = 0
	deltaSet     = 1
	deltaFold    = 2
	deltaRemoved = 3

	deltaShort = 1
	deltaStart = 2
)

// AppendDelta appends the delta from before, the stored form of a section that was loaded into s, to s as
// it is now. ok is false if there is none, and the value has to be recorded as a whole.
func (s *Section) AppendDelta(dst, before []byte) (delta []byte, ok bool) {
	if s.renumbered {
		return dst, false
	}
	dst = s.appendHead(dst)
	old, is := before[:len(before)-footerSize], s.holds
	for len(old) > 0 || len(is) > 0 {
		switch {
		case len(is) == 0 || len(old) > 0 && int32(number(old)-number(is)) < 0:
			dst = binary.AppendUvarint(append(dst, deltaRemoved), uint64(number(old)))
			old = old[width(old):]
			continue
		case len(old) > 0 && number(old) == number(is):
			dst = appendChange(dst, old[:width(old)], is[:width(is)])
			old = old[width(old):]
		default:
			dst = append(append(dst, deltaSet), is[:width(is)]...)
		}
		is = is[width(is):]
	}
	return append(dst, deltaEnd), true
}

// appendHead appends the part of a delta before the changes.
func (s *Section) appendHead(dst []byte) []byte {
	flags := byte(0)
	if s.Short {
		flags |= deltaShort
	}
	if s.Start != 0 {
		dst = binary.LittleEndian.AppendUint64(append(dst, flags|deltaStart), uint64(s.Start))
	} else {
		dst = append(dst, flags)
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(s.Until))
	dst = binary.AppendUvarint(dst, uint64(s.Memory/time.Millisecond))
	dst = binary.AppendUvarint(dst, uint64(s.MaxCalls))
	return binary.AppendUvarint(dst, uint64(s.next))
}

// head reads the part of a delta before the changes into s, and returns the rest of b. Fields of s
// that a delta does not have remain unchanged.
func (s *Section) head(b []byte) (rest []byte, ok bool) {
	if len(b) == 0 || b[0] > deltaShort|deltaStart {
		return nil, false
	}
	flags := b[0]
	s.Short, s.Start, b = flags&deltaShort != 0, 0, b[1:]
	if flags&deltaStart != 0 {
		if len(b) < 8 {
			return nil, false
		}
		s.Start, b = limit.Instant(binary.LittleEndian.Uint64(b)), b[8:]
	}
	if len(b) < 8 {
		return nil, false
	}
	s.Until, b = limit.Instant(binary.LittleEndian.Uint64(b)), b[8:]
	var numbers [3]uint32
	for i := range numbers {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > 1<<32-1 {
			return nil, false
		}
		numbers[i], b = uint32(n), b[size:]
	}
	s.Memory, s.MaxCalls, s.next = time.Duration(numbers[0])*time.Millisecond, numbers[1], numbers[2]
	return b, s.MaxCalls > 0
}

// appendChange appends the change from old to is, the stored forms of one reservation.
func appendChange(dst, old, is []byte) []byte {
	switch {
	case bytes.Equal(old, is):
		return dst
	case len(old) == len(is) && bytes.Equal(old[:foldAt], is[:foldAt]) && bytes.Equal(old[holdSize:], is[holdSize:]):
		dst = binary.AppendUvarint(append(dst, deltaFold), uint64(number(is)))
		return append(dst, is[foldAt:holdSize]...)
	}
	return append(append(dst, deltaSet), is...)
}

// ReadDelta reads the delta with which b begins, and returns the rest of b. b may be any bytes. f is
// the form of the reservations. The error is [ErrCorrupt].
func ReadDelta(b []byte, f Form) (delta, rest []byte, err error) {
	rest, ok := new(Section).head(b)
	if !ok {
		return nil, nil, ErrCorrupt
	}
	for {
		change, after, ok := nextChange(rest, f)
		if !ok {
			return nil, nil, ErrCorrupt
		}
		if rest = after; change.op == deltaEnd {
			return b[:len(b)-len(rest)], rest, nil
		}
	}
}

// change is a decoded change of a delta. body is the stored form of the reservation, or 16 bytes, or
// empty.
type change struct {
	op     byte
	number uint32
	body   []byte
}

// nextChange decodes the change with which b begins.
func nextChange(b []byte, f Form) (c change, rest []byte, ok bool) {
	if len(b) == 0 {
		return c, nil, false
	}
	c.op, b = b[0], b[1:]
	switch c.op {
	case deltaEnd:
		return c, b, true
	case deltaSet:
		if !valid(b, f) {
			return c, nil, false
		}
		n := width(b)
		c.number, c.body = number(b), b[:n]
		return c, b[n:], true
	case deltaFold, deltaRemoved:
		n, size := binary.Uvarint(b)
		if size <= 0 || n > 1<<32-1 {
			return c, nil, false
		}
		c.number, b = uint32(n), b[size:]
		if c.op == deltaRemoved {
			return c, b, true
		}
		if len(b) < holdSize-foldAt {
			return c, nil, false
		}
		c.body = b[:holdSize-foldAt]
		return c, b[holdSize-foldAt:], true
	}
	return c, nil, false
}

// ApplyDelta changes s by a delta that [ReadDelta] has read, and reports whether s is still valid. If not, s has a
// reservation that was made after the delta. Then the section that was loaded into s already includes the delta and all
// before it, and the caller drops the changed s.
func (s *Section) ApplyDelta(delta []byte, f Form) (ok bool) {
	for b, _ := s.head(delta); ; {
		c, rest, ok := nextChange(b, f)
		if !ok || c.op == deltaEnd {
			return s.inOrder() && len(s.holds)/unit <= lengthMask
		}
		s.change(c, f)
		b = rest
	}
}

// change makes one change of a delta.
func (s *Section) change(c change, f Form) {
	at, found := 0, false
	for at < len(s.holds) && int32(number(s.holds[at:])-c.number) < 0 {
		at += width(s.holds[at:])
	}
	if found = at < len(s.holds) && number(s.holds[at:]) == c.number; found && c.op != deltaFold {
		s.remove(at)
	}
	switch {
	case c.op == deltaSet:
		s.holds = append(s.holds, c.body...) // grows
		copy(s.holds[at+len(c.body):], s.holds[at:])
		copy(s.holds[at:], c.body)
	case c.op == deltaFold && found:
		b := s.holds[at:]
		was := foldIn(b)
		copy(b[foldAt:holdSize], c.body)
		if !valid(b, f) {
			was.put(b)
		}
	}
}
