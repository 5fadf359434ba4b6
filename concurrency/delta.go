package concurrency

import (
	"encoding/binary"
	"time"
)

// A delta describes the effect of a plan on one member of a set, so that a large set need not be
// recorded as a whole:
//
//	effect  a byte: 1 the member holds a lease, 2 it holds none
//	now     8 bytes, the instant of the call, little-endian
//	lease   if it holds one: unsigned varint, the time from now to its end
//	member  the rest
const (
	deltaHolds = byte(Holds)
	deltaGone  = byte(Gone)
)

// mostStored is the number of members up to which deltas may add members to a set. It is twice the
// largest size of a set, since a delta may be applied to a newer set.
const mostStored = 2 * LargestMaxMembers

// AppendDelta appends the change by p to dst. p.Action must be Store, and value must be the value
// on which p was decided. AppendDelta must be called before Apply. It returns false, and appends
// nothing, if the whole value has to be recorded, because value is empty.
func (p *Plan) AppendDelta(dst, value []byte) (delta []byte, ok bool) {
	if len(value) == 0 || p.Action != Store || p.Effect == Nothing {
		return dst, false
	}
	dst = append(dst, byte(p.Effect))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(p.Now))
	if p.Effect == Holds {
		dst = binary.AppendUvarint(dst, uint64(p.Until)-uint64(p.Now))
	}
	return append(dst, p.Member...), true
}

// ApplyDelta returns value with the change of delta. It treats value and dst as [Plan.Apply] does.
// value must pass [Check] under mode; then the result does, too. delta may be any bytes. If delta
// is invalid, or the set would get more members than mostStored, ApplyDelta returns [ErrCorrupt]
// and does not change value.
//
// value may be newer than delta. When all deltas up to the state of value have been applied, the
// same members hold leases as before. A set never becomes empty, since an empty set is invalid: its
// last member stays, with an expired lease.
func ApplyDelta(mode Mode, value, dst, delta []byte) ([]byte, error) {
	p, ok := planOf(delta)
	if !ok || mode != Leases {
		return value, ErrCorrupt
	}
	s := set(value)
	until, found := s.find(p.Member)
	switch {
	case p.Effect == Holds:
		if !found && s.size() >= mostStored {
			return value, ErrCorrupt
		}
	case !found || until <= p.Now:
		return value, nil
	case s.size()-s.expired(p.Now) == 1:
		p.Effect, p.Until = Holds, p.Now
	}
	return p.Apply(value, dst), nil
}

// CheckDelta returns nil if delta is valid for [ApplyDelta] under mode, otherwise [ErrCorrupt].
// delta may be any bytes.
func CheckDelta(mode Mode, delta []byte) error {
	if _, ok := planOf(delta); !ok || mode != Leases {
		return ErrCorrupt
	}
	return nil
}

// planOf returns the plan that delta describes. ok is false if delta, which may be any bytes, is
// invalid.
func planOf(delta []byte) (p Plan, ok bool) {
	if len(delta) < 9 {
		return p, false
	}
	p.Effect, p.Now, p.Member = Effect(delta[0]), getInstant(delta[1:]), delta[9:]
	switch delta[0] {
	case deltaHolds:
		lease, n := binary.Uvarint(p.Member)
		if n <= 0 || lease > uint64(MaxLease) {
			return p, false
		}
		p.Until, p.Member = p.Now.Add(time.Duration(lease)), p.Member[n:]
	case deltaGone:
	default:
		return p, false
	}
	return p, len(p.Member) <= MaxMemberSize
}
