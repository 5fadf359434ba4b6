package concurrency

import (
	"bytes"
	"encoding/binary"

	"github.com/cellserver/cellserver/limit"
)

// list is the form of a small set. It has the form byte and the number of members (one byte). After
// these come the members in the order of their expiries, the earliest first. Each has its expiry (8
// bytes), the length of its name (2 bytes) and the name.
type list []byte

const (
	listHeader  = 2
	entryHeader = 10
)

// next decodes the first entry in rest. until is its expiry, member is its name, and others has the
// other entries.
func (list) next(rest []byte) (until limit.Instant, member, others []byte) {
	end := entryHeader + int(binary.LittleEndian.Uint16(rest[8:]))
	return getInstant(rest), rest[entryHeader:end], rest[end:]
}

func (l list) size() int { return int(l[1]) }

func (l list) expired(now limit.Instant) (n int) {
	for rest := l[listHeader:]; len(rest) > 0; n++ {
		var until limit.Instant
		if until, _, rest = l.next(rest); until > now {
			break
		}
	}
	return n
}

// expiry returns the expiry with index i in ascending order. i must be less than the number of
// members.
func (l list) expiry(i int) limit.Instant {
	rest := l[listHeader:]
	for range i {
		_, _, rest = l.next(rest)
	}
	return getInstant(rest)
}

func (l list) find(member []byte) (limit.Instant, bool) {
	for rest := l[listHeader:]; len(rest) > 0; {
		var (
			until limit.Instant
			m     []byte
		)
		if until, m, rest = l.next(rest); bytes.Equal(m, member) {
			return until, true
		}
	}
	return limit.MinInstant, false
}

func appendEntry(out []byte, until limit.Instant, member []byte) []byte {
	out = binary.LittleEndian.AppendUint64(out, uint64(until))
	out = binary.LittleEndian.AppendUint16(out, uint16(len(member)))
	return append(out, member...)
}
