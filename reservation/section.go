package reservation

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
)

// The reservations of a key form a section at the end of its value, after the records of package
// idempotency, if there are any:
//
//	the live reservations, in the order in which they were made
//	 8 bytes  TAT before the first of them that is not void, for a bucket
//	 8 bytes  seed of the hashes, the same as that of the records
//	 8 bytes  the instant until which the key remembers a reservation, live or ended
//	 4 bytes  time in milliseconds for which ended reservations are remembered
//	 4 bytes  maximum number of calls that the key remembers
//	 4 bytes  number of the next reservation
//	 4 bytes  bit 31 is set, bit 30 says that records precede, bit 29 is [Section.Short], and the
//	          rest is the length of the live reservations in units of 16 bytes
//
// The last four bytes of a value without reservations do not have bit 31, since they are a capacity.
const (
	footerSize  = 40
	unit        = 16
	marker      = 1 << 31
	withRecords = 1 << 30
	short       = 1 << 29
	lengthMask  = 1<<24 - 1
)

// ErrCorrupt means that bytes are neither a valid section nor a valid delta of one.
var ErrCorrupt = errors.New("bytes are not a limiter with reservations")

// Section has the reservations of one key in memory of its own. The zero value has none. It is reused
// for one key after another.
type Section struct {
	// Start is the TAT of a bucket before the first reservation that is not void.
	Start limit.Instant
	// Seed is the key of the hashes of the tokens.
	Seed uint64
	// Until is the instant until which the key has to be kept to remember its reservations.
	Until limit.Instant
	// Memory is the time for which an ended reservation is remembered, and MaxCalls is the maximum
	// number of calls that the key remembers, with ended reservations.
	Memory   time.Duration
	MaxCalls uint32
	// Records says that records of package idempotency precede the section.
	Records bool
	// Short says that new buckets of the last call start with fewer tokens than the capacity.
	Short bool

	next       uint32
	renumbered bool   // whether the reservations have other numbers than when they were loaded
	holds      []byte // the live reservations in their stored form
	positions  []int  // the positions that bySlot returns; their memory is reused
}

// maxSpan is the maximum difference between the number of a live reservation and the next number. It
// lets numbers be compared although they start again at 0 after 2^32 - 1.
const maxSpan = 1 << 30

// Marked reports whether value, which belongs to a limiter that remembers calls, has a section of
// reservations.
func Marked(value []byte) bool {
	n := len(value)
	return n >= footerSize && binary.LittleEndian.Uint32(value[n-4:])&marker != 0
}

// Split returns the section in value, and rest, the bytes before the section: the state of the limiter and, if records
// is true, the records of remembered calls. value must be [Marked] and valid: see [Check].
func Split(value []byte) (rest, section []byte, records bool) {
	word := binary.LittleEndian.Uint32(value[len(value)-4:])
	n := len(value) - footerSize - int(word&lengthMask)*unit
	return value[:n:n], value[n:], word&withRecords != 0
}

// Load reads the section. A nil section has no reservations.
func (s *Section) Load(section []byte) {
	*s = Section{holds: s.holds[:0], positions: s.positions[:0]}
	if section == nil {
		return
	}
	n := len(section) - footerSize
	f := section[n:]
	s.holds = append(s.holds, section[:n]...)
	s.footer(f)
}

// footer reads the footer f, except the length of the reservations.
func (s *Section) footer(f []byte) {
	s.Start = limit.Instant(binary.LittleEndian.Uint64(f))
	s.Seed = binary.LittleEndian.Uint64(f[8:])
	s.Until = limit.Instant(binary.LittleEndian.Uint64(f[16:]))
	s.Memory = time.Duration(binary.LittleEndian.Uint32(f[24:])) * time.Millisecond
	s.MaxCalls = binary.LittleEndian.Uint32(f[28:])
	s.next = binary.LittleEndian.Uint32(f[32:])
	word := binary.LittleEndian.Uint32(f[36:])
	s.Records, s.Short = word&withRecords != 0, word&short != 0
}

// Append appends the stored form of the section to dst.
func (s *Section) Append(dst []byte) []byte { return s.appendFooter(append(dst, s.holds...)) }

// Size returns the length in bytes of the stored form.
func (s *Section) Size() int { return len(s.holds) + footerSize }

func (s *Section) appendFooter(dst []byte) []byte {
	word := uint32(marker | len(s.holds)/unit)
	if s.Records {
		word |= withRecords
	}
	if s.Short {
		word |= short
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(s.Start))
	dst = binary.LittleEndian.AppendUint64(dst, s.Seed)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(s.Until))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(s.Memory/time.Millisecond))
	dst = binary.LittleEndian.AppendUint32(dst, s.MaxCalls)
	dst = binary.LittleEndian.AppendUint32(dst, s.next)
	return binary.LittleEndian.AppendUint32(dst, word)
}

// Trim frees the memory of the section if it has more than most bytes.
func (s *Section) Trim(most int) {
	if cap(s.holds) > most {
		*s = Section{}
	}
}

// Live returns the number of live reservations.
func (s *Section) Live() (n int) {
	for at := 0; at < len(s.holds); at += width(s.holds[at:]) {
		if !isLink(s.holds[at:]) {
			n++
		}
	}
	return n
}

// maxHolds is the maximum length in bytes of the live reservations of a key, before one more is added.
const maxHolds = 64 << 20

// Full reports whether the key cannot have one more live reservation, because it has most of them
// already or they take maxHolds bytes.
func (s *Section) Full(most uint32) bool {
	return len(s.holds) >= maxHolds || s.Live() >= int(most)
}

// Units returns the number of units of the live reservations.
func (s *Section) Units() (units int64) {
	for at := 0; at < len(s.holds); at += width(s.holds[at:]) {
		units = limit.SatAdd(units, int64At(s.holds[at:], unitsAt))
	}
	return units
}

// NextEnd returns the instant at which the first live reservation has passed its time, or
// [limit.MaxInstant] if there is none.
func (s *Section) NextEnd() limit.Instant {
	first := limit.MaxInstant
	for at := 0; at < len(s.holds); at += width(s.holds[at:]) {
		if b := s.holds[at:]; !isLink(b) {
			first = min(first, end(b))
		}
	}
	return first
}

// Due reports whether a reservation has passed its time at now, or a link is forgotten.
func (s *Section) Due(now limit.Instant) bool {
	for at := 0; at < len(s.holds); at += width(s.holds[at:]) {
		if end(s.holds[at:]) <= now {
			return true
		}
	}
	return false
}

// Find returns the position of the live reservation whose token has the hash h.
func (s *Section) Find(h idempotency.Hash) (at int, found bool) {
	for at := 0; at < len(s.holds); at += width(s.holds[at:]) {
		if b := s.holds[at:]; !isLink(b) && idempotency.HashIn(b) == h {
			return at, true
		}
	}
	return 0, false
}

// At returns the reservation at a position.
func (s *Section) At(at int) Hold { return read(s.holds[at:]) }

// Add adds a reservation after the others, and extends Until so that the key remembers the
// reservation.
func (s *Section) Add(h *Hold) {
	s.EndLink(h.Hash)
	s.append(h)
	s.Until = max(s.Until, h.End.Add(s.Memory))
}

// append adds the stored form of h after the others.
func (s *Section) append(h *Hold) {
	if len(s.holds) > 0 && s.next-number(s.holds) >= maxSpan {
		s.renumber()
	}
	s.holds = h.append(s.holds, s.next)
	s.next++
}

// renumber numbers the reservations from 0 on.
func (s *Section) renumber() {
	s.next, s.renumbered = 0, true
	for at := 0; at < len(s.holds); at += width(s.holds[at:]) {
		binary.LittleEndian.PutUint32(s.holds[at+numberAt:], s.next)
		s.next++
	}
}

// inOrder reports whether the numbers of the reservations grow, and are below the next one by at most
// maxSpan.
func (s *Section) inOrder() bool {
	last := uint32(maxSpan) // the difference between the number of the last reservation and next
	for at := 0; at < len(s.holds); at += width(s.holds[at:]) {
		n := s.next - number(s.holds[at:])
		if n == 0 || n > last || at > 0 && n == last {
			return false
		}
		last = n
	}
	return true
}

// Renew changes the end of the reservation at a position.
func (s *Section) Renew(at int, now, until limit.Instant) {
	binary.LittleEndian.PutUint64(s.holds[at+endAt:], uint64(until))
	s.Keep(now)
}

// Keep sets Until to the instant until which the live reservations, and those that have ended up to now,
// are remembered.
func (s *Section) Keep(now limit.Instant) {
	s.Until = min(s.Until, now.Add(s.Memory))
	for at := 0; at < len(s.holds); at += width(s.holds[at:]) {
		if b := s.holds[at:]; !isLink(b) {
			s.Until = max(s.Until, end(b).Add(s.Memory))
		}
	}
}

// remove removes the reservation at a position.
func (s *Section) remove(at int) {
	s.holds = append(s.holds[:at], s.holds[at+width(s.holds[at:]):]...)
}

// Form is the form of the reservations that a limiter can have.
type Form uint8

// These are the forms.
const (
	// Window is the form of windows, and Bucket the form of buckets of mode Greedy.
	Window Form = iota + 1
	Bucket
	// Converted is the form of buckets of other modes. They have only reservations that are void.
	Converted
)

// Check validates the section of reservations at the end of value. value must be [Marked]; otherwise it may be any
// bytes. rest has the bytes before the section, and records says whether rest ends with records of remembered calls.
// The error is [ErrCorrupt] if the section is not valid in the form f.
func Check(value []byte, f Form) (rest []byte, records bool, err error) {
	word := binary.LittleEndian.Uint32(value[len(value)-4:])
	if word&^(marker|withRecords|short|lengthMask) != 0 || int(word&lengthMask)*unit > len(value)-footerSize {
		return nil, false, ErrCorrupt
	}
	rest, section, records := Split(value)
	holds := section[:len(section)-footerSize]
	for at := 0; at < len(holds); at += width(holds[at:]) {
		if !valid(holds[at:], f) {
			return nil, false, ErrCorrupt
		}
	}
	s := Section{holds: holds}
	if s.footer(section[len(holds):]); s.MaxCalls == 0 || !s.inOrder() { // a key remembers at least one call
		return nil, false, ErrCorrupt
	}
	return rest, records, nil
}
