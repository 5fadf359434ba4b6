package concurrency

import (
	"encoding/binary"
	"errors"

	"github.com/cellserver/cellserver/limit"
)

// set is a stored value: the members that hold or held a lease. Members are
// numbered from 0 in the order of their expiries; among equal expiries the order
// is the form's own. The empty set is that of a key that does not exist.
//
// The first byte of a value tells its form. Numbers are little-endian, instants
// Unix nanoseconds.
type set []byte

const (
	formList  = 1
	formIndex = 2
)

// The sizes at which a set changes its form. They are apart so that a set does
// not go back and forth.
const (
	listMost   = 64
	indexLeast = 32
)

// size returns the number of members, expired ones included.
func (s set) size() int {
	switch {
	case len(s) == 0:
		return 0
	case s[0] == formList:
		return list(s).size()
	}
	return index(s).size()
}

// expired returns how many members' leases are no longer live at now.
func (s set) expired(now limit.Instant) int {
	switch {
	case len(s) == 0:
		return 0
	case s[0] == formList:
		return list(s).expired(now)
	}
	return index(s).expired(now)
}

// expiry returns the i-th expiry, [limit.MinInstant] where there is none.
func (s set) expiry(i int) limit.Instant {
	switch {
	case i < 0 || i >= s.size():
		return limit.MinInstant
	case s[0] == formList:
		return list(s).expiry(i)
	}
	return index(s).expiry(i)
}

// find returns the expiry of member's lease, if it has one, live or not.
func (s set) find(member []byte) (limit.Instant, bool) {
	switch {
	case len(s) == 0:
		return limit.MinInstant, false
	case s[0] == formList:
		return list(s).find(member)
	}
	ref := index(s).find(member)
	if ref == none {
		return limit.MinInstant, false
	}
	return index(s).until(ref), true
}

// Apply returns the bytes to store for a plan whose Action is Store. value is what
// was stored and decided on, empty if nothing was. Apply may write into value and
// return it; otherwise it writes into dst's capacity, or into new memory where
// that is too small, and value must not be used again. dst must not overlap value.
func (p *Plan) Apply(value, dst []byte) []byte {
	switch {
	case p.Effect == Nothing:
		return value
	case len(value) == 0 || value[0] == formList:
		return list(value).apply(dst, p)
	}
	return index(value).apply(dst, p)
}

// ErrCorrupt is what [Check] returns for bytes that no value has.
var ErrCorrupt = errors.New("bytes are not a set of leases")

// Check returns [ErrCorrupt] unless value is one that [Decide] and Apply can be
// given under mode: it is for bytes that come from a file. It never panics, and
// takes time in proportion to the value.
func Check(mode Mode, value []byte) error {
	ok := mode == Leases && len(value) > 0
	if ok {
		switch value[0] {
		case formList:
			ok = list(value).sound()
		case formIndex:
			ok = index(value).sound()
		default:
			ok = false
		}
	}
	if !ok {
		return ErrCorrupt
	}
	return nil
}

// Describe calls emit with what RL.INFO shows of a stored value: used, the members
// that hold a lease at now; members, all that take room; and reset-ms, the time
// until the last lease expires. value must pass [Check].
func Describe(mode Mode, value []byte, now limit.Instant, emit func(field string, value int64)) (used int64) {
	if mode != Leases {
		return 0
	}
	s := set(value)
	used = int64(s.size() - s.expired(now))
	emit("used", used)
	emit("members", int64(s.size()))
	emit("reset-ms", limit.MillisUp(after(s.expiry(s.size()-1), now)))
	return used
}

func getInstant(b []byte) limit.Instant { return limit.Instant(binary.LittleEndian.Uint64(b)) }

func putInstant(b []byte, t limit.Instant) { binary.LittleEndian.PutUint64(b, uint64(t)) }

// sized returns size bytes of dst's memory, or of new memory where dst has less.
func sized(dst []byte, size int) []byte {
	if cap(dst) < size {
		return make([]byte, size)
	}
	return dst[:size]
}
