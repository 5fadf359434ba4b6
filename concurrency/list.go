package concurrency

import (
	"bytes"
	"encoding/binary"

	"github.com/cellserver/cellserver/limit"
)

// list is the form of a small set. It has the form byte and the number of members (one byte). After
// these come the members in the order of their expiries, the earliest first. Each has its expiry (8
// bytes), the length of its name (2 bytes), its number of places (4 bytes, in mode Places alone) and
// the name.
type list []byte

const (
	listHeader   = 2
	entryHeader  = 10
	placesHeader = entryHeader + 4
)

// header returns the number of bytes before the name of a member: placesHeader if the mode of the
// list is Places, else entryHeader.
func (l list) header() int {
	if hasPlaces(l) {
		return placesHeader
	}
	return entryHeader
}

// entry returns the expiry of the entry that begins at the offset at, and the offset of its end.
// Its name is between at+header and end. header is the header of the list.
func (l list) entry(at, header int) (until limit.Instant, end int) {
	e := l[at : at+entryHeader]
	return getInstant(e), at + header + int(binary.LittleEndian.Uint16(e[8:]))
}

// places returns the number of places of the entry that begins at the offset at. header is the
// header of the list.
func (l list) places(at, header int) int64 {
	if header == entryHeader {
		return 1
	}
	return int64(binary.LittleEndian.Uint32(l[at+entryHeader:]))
}

func (l list) size() int { return int(l[1]) }

func (l list) expired(now limit.Instant) (n int) {
	header := l.header()
	for at := listHeader; at < len(l); n++ {
		until, end := l.entry(at, header)
		if until > now {
			break
		}
		at = end
	}
	return n
}

// expiry returns the expiry with index i in ascending order. i must be less than the number of
// members.
func (l list) expiry(i int) limit.Instant {
	header := l.header()
	at := listHeader
	for range i {
		_, at = l.entry(at, header)
	}
	return getInstant(l[at:])
}

func (l list) find(member []byte) (until limit.Instant, found bool) {
	header := l.header()
	for at := listHeader; at < len(l); {
		until, end := l.entry(at, header)
		if bytes.Equal(l[at+header:end], member) {
			return until, true
		}
		at = end
	}
	return limit.MinInstant, false
}

// look sets all fields of h for a call of member at now.
func (l list) look(h *holdings, member []byte, now limit.Instant) {
	var (
		header       = l.header()
		live, rest   int // live is the number of live members, and rest the number without the member of the call
		used, own    int64
		last, others = limit.MinInstant, limit.MinInstant
	)
	for at := listHeader; at < len(l); {
		until, end := l.entry(at, header)
		last = until
		mine := bytes.Equal(l[at+header:end], member)
		if !mine {
			others = until
		}
		if until > now {
			places := l.places(at, header)
			live++
			used += places
			if mine {
				own = places
			} else {
				rest++
			}
		}
		at = end
	}
	h.stored, h.live, h.used = l.size(), live, used
	h.held, h.own = own > 0, own
	h.last, h.others = last, others
	// A call writes all members of a list, so it always writes them in the right mode.
	h.several = used-own != int64(rest)
}

// used returns the number of places of the members that hold a lease at now.
func (l list) used(now limit.Instant) (n int64) {
	header := l.header()
	for at := listHeader; at < len(l); {
		until, end := l.entry(at, header)
		if until > now {
			n += l.places(at, header)
		}
		at = end
	}
	return n
}

// freed returns the first instant at which so many places have become free, because leases of
// other members than member have expired after now. These members must have that many places.
func (l list) freed(places int64, member []byte, now limit.Instant) limit.Instant {
	header := l.header()
	for at := listHeader; at < len(l); {
		until, end := l.entry(at, header)
		if until > now && !bytes.Equal(l[at+header:end], member) {
			if places -= l.places(at, header); places <= 0 {
				return until
			}
		}
		at = end
	}
	return limit.MaxInstant
}

// appendEntry appends an entry to out, a list with the given header.
func appendEntry(out []byte, header int, until limit.Instant, places int64, member []byte) []byte {
	out = binary.LittleEndian.AppendUint64(out, uint64(until))
	out = binary.LittleEndian.AppendUint16(out, uint16(len(member)))
	if header == placesHeader {
		out = binary.LittleEndian.AppendUint32(out, uint32(places))
	}
	return append(out, member...)
}

// appendRange appends to out, a list with the given header, the entries of l from the offset from
// up to the offset to. If from is not below to, there are none.
func (l list) appendRange(out []byte, header, from, to int) []byte {
	if from >= to {
		return out // most ranges are empty, and then the call is saved
	}
	return l.appendEntries(out, header, from, to)
}

// appendEntries does what appendRange does, if the range is not empty.
func (l list) appendEntries(out []byte, header, from, to int) []byte {
	old := l.header()
	if old == header {
		return append(out, l[from:to]...)
	}
	for from < to {
		until, end := l.entry(from, old)
		out = appendEntry(out, header, until, l.places(from, old), l[from+old:end])
		from = end
	}
	return out
}
