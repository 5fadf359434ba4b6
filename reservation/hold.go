package reservation

import (
	"encoding/binary"

	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
)

// Hold is a live reservation.
type Hold struct {
	Hash  idempotency.Hash
	Print uint32        // fingerprint of the call that made the reservation
	End   limit.Instant // instant from which the reservation counts as ended
	// At is the instant of the charge for a bucket, and for a window the slot that has the units: see
	// slidingwindow.Newest.
	At limit.Instant
	// Units is the number of units that were charged. Back is the number of them that can still be given
	// back to a window; refunds may have reduced it.
	Units, Back int64
	// Missing and Ready have the same meaning as in idempotency.Record.
	Missing int64
	Ready   limit.Instant
	// Variant says that windows of the call start at the first use of the key.
	Variant bool
	// Void says that the limiter has been converted since, so that nothing can be given back.
	Void bool

	// Part identifies the limit if the reservation is of several limits. It is zero for a reservation of one limit.
	Part Part

	after fold // for a bucket: the effect on the TAT of all calls from this one up to the next reservation that is not void
}

// Part identifies one limit of a reservation of several limits.
type Part struct {
	// Of is the number of windows and buckets of the reservation, and Index the index of this one
	// among them. Of is 0 for a reservation of one limit.
	Index, Of uint8
	// Calls says that a commit does not change the number of units, because the limit counts calls.
	Calls bool
	// Linked says that the keys of the reservation do not follow from the arguments of its settlement, so
	// that one of them has a [Link].
	Linked bool
	// Free says that the reservation has taken nothing, so that its settlement charges nothing: it has
	// no units.
	Free bool
	// Member is the member that holds places in the lease sets of the reservation; nil if the member is the id of the
	// reservation. In a hold that was read, Member refers to the section, and is valid until the section changes.
	Member []byte
}

// A hold is stored as
//
//	15 bytes  hash of the token
//	 1 byte   flags
//	 8 bytes  End
//	 4 bytes  Print
//	 4 bytes  number, which grows by one with each reservation of the key
//	 8 bytes  At
//	 8 bytes  Units
//	16 bytes  of a bucket: the fold of all charges since; of a window: Back, and zero
//
// and, if flagMore is set, followed by
//
//	8 bytes  Missing
//	8 bytes  Ready
//
// and, if flagPart is set, followed by Index, Of, the length of Member in two bytes and Member, with zeros
// up to a multiple of 16 bytes. A hold with flagLink is none, but a [Link].
const (
	holdSize = 64
	moreSize = 16
	partHead = 4
	// maxMember is the maximum length of Member in bytes: the maximum for the name of a lease's
	// member.
	maxMember = 1024
	flagsAt   = 15
	endAt     = 16
	printAt   = 24
	numberAt  = 28
	slotAt    = 32
	unitsAt   = 40
	foldAt    = 48

	flagMore    = 1
	flagVoid    = 2
	flagCalls   = 4
	flagVariant = 8
	flagPart    = 16
	flagLinked  = 32
	flagLink    = 64
	allFlags    = flagMore | flagVoid | flagCalls | flagVariant | flagPart | flagLinked
)

func width(hold []byte) int {
	if hold[flagsAt]&(flagMore|flagPart|flagLink) == 0 {
		return holdSize
	}
	if isLink(hold) {
		return linkWidth(hold)
	}
	n := partAt(hold)
	if hold[flagsAt]&flagPart != 0 {
		n += partSize(int(binary.LittleEndian.Uint16(hold[n+2:])))
	}
	return n
}

// partAt returns where the part begins in hold, which has one.
func partAt(hold []byte) int {
	if hold[flagsAt]&flagMore != 0 {
		return holdSize + moreSize
	}
	return holdSize
}

// partSize returns the length of the stored form of a part with a member of n bytes.
func partSize(n int) int { return (partHead + n + unit - 1) / unit * unit }

func end(hold []byte) limit.Instant {
	return limit.Instant(binary.LittleEndian.Uint64(hold[endAt:]))
}

func number(hold []byte) uint32 { return binary.LittleEndian.Uint32(hold[numberAt:]) }

func void(hold []byte) bool { return hold[flagsAt]&flagVoid != 0 }

func int64At(hold []byte, at int) int64 { return int64(binary.LittleEndian.Uint64(hold[at:])) }

// valid reports whether b begins with a valid hold of the form f.
func valid(b []byte, f Form) bool {
	if len(b) >= holdSize && isLink(b) {
		return validLink(b)
	}
	if len(b) < holdSize || b[flagsAt]&^allFlags != 0 || b[flagsAt]&flagPart != 0 && len(b) < partAt(b)+partHead || len(b) < width(b) {
		return false
	}
	if b[flagsAt]&flagPart != 0 {
		if p := b[partAt(b):]; p[1] == 0 || p[0] >= p[1] || binary.LittleEndian.Uint16(p[2:]) > maxMember {
			return false
		}
	}
	units, back := int64At(b, unitsAt), int64At(b, foldAt)
	switch f {
	case Window:
		return back >= 0 && back <= units && int64At(b, foldAt+8) == 0
	case Bucket:
		return units >= 0
	}
	return units >= 0 && void(b)
}

// read returns the hold with which b begins. It sets both Back and the fold, of which only one has a
// meaning.
func read(b []byte) Hold {
	h := Hold{
		Hash:    idempotency.HashIn(b),
		Print:   binary.LittleEndian.Uint32(b[printAt:]),
		End:     end(b),
		At:      limit.Instant(int64At(b, slotAt)),
		Units:   int64At(b, unitsAt),
		Back:    int64At(b, foldAt),
		Ready:   limit.MinInstant,
		Variant: b[flagsAt]&flagVariant != 0,
		Void:    void(b),
		after:   foldIn(b),
	}
	if b[flagsAt]&flagMore != 0 {
		h.Missing, h.Ready = int64At(b, holdSize), limit.Instant(int64At(b, holdSize+8))
	}
	if b[flagsAt]&flagPart != 0 {
		p := b[partAt(b):]
		h.Part = Part{Index: p[0], Of: p[1], Calls: b[flagsAt]&flagCalls != 0, Linked: b[flagsAt]&flagLinked != 0}
		if n := binary.LittleEndian.Uint16(p[2:]); n > 0 {
			h.Part.Member = p[partHead : partHead+n]
		}
	}
	h.Part.Free = h.Units == 0
	return h
}

// append appends the stored form of h, of a new reservation with the number n, to dst. A hold of a bucket
// has a Back of 0.
func (h *Hold) append(dst []byte, n uint32) []byte {
	flags := byte(0)
	more := h.Missing != 0 || h.Ready != limit.MinInstant
	if more {
		flags |= flagMore
	}
	if h.Variant {
		flags |= flagVariant
	}
	if h.Part.Of > 0 {
		flags |= flagPart
	}
	if h.Part.Calls {
		flags |= flagCalls
	}
	if h.Part.Linked {
		flags |= flagLinked
	}
	if h.Void {
		flags |= flagVoid
	}
	dst = h.Hash.Append(dst, flags)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.End))
	dst = binary.LittleEndian.AppendUint32(dst, h.Print)
	dst = binary.LittleEndian.AppendUint32(dst, n)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.At))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.Units))
	if h.after == (fold{}) {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(h.Back))
		dst = binary.LittleEndian.AppendUint64(dst, 0)
	} else {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(h.after.add))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(h.after.least))
	}
	if more {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(h.Missing))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(h.Ready))
	}
	if h.Part.Of > 0 {
		n := len(h.Part.Member)
		dst = binary.LittleEndian.AppendUint16(append(dst, h.Part.Index, h.Part.Of), uint16(n))
		dst = append(dst, h.Part.Member...)
		dst = append(dst, make([]byte, partSize(n)-partHead-n)...)
	}
	return dst
}

// When a [Part] has lapsed, the field Missing of its record has its properties: Index and Of in the lowest two bytes,
// and these flags.
const (
	lapsedCalls  = 1 << 16
	lapsedLinked = 1 << 17
	lapsedFree   = 1 << 18
)

// Record returns the record of a reservation that has ended with the given state. The key remembers
// it until the given instant. The record of a part that has lapsed also identifies the part, so
// that it can be committed late: see [PartOf].
func (h *Hold) Record(state idempotency.State, until limit.Instant) idempotency.Record {
	r := idempotency.Record{Print: h.Print, Ready: limit.MinInstant, Until: until, State: state, Variant: h.Variant}
	if state != idempotency.Lapsed {
		return r
	}
	r.Missing = int64(h.Part.Index) | int64(h.Part.Of)<<8
	if h.Part.Calls {
		r.Missing |= lapsedCalls
	}
	if h.Part.Linked {
		r.Missing |= lapsedLinked
	}
	if h.Part.Free {
		r.Missing |= lapsedFree
	}
	return r
}

// PartOf returns the part of which r, the record of a lapsed reservation, was made. Its Member is
// not set.
func PartOf(r *idempotency.Record) Part {
	m := r.Missing
	return Part{Index: uint8(m), Of: uint8(m >> 8), Calls: m&lapsedCalls != 0, Linked: m&lapsedLinked != 0, Free: m&lapsedFree != 0}
}
