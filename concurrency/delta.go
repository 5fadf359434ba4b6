package concurrency

import (
	"encoding/binary"
	"time"
)

// A delta describes the effect of a plan on one member of a set, so that a large set need not be
// recorded as a whole:
//
//	effect  a byte: 1 the member holds a lease, 2 it holds none, 3 it holds
//	        one, with a number of places; 1 is of the mode Leases, 3 of Places
//	now     8 bytes, the instant of the call, little-endian
//	lease   if it holds one: unsigned varint, the time from now to its end
//	places  after the effect 3: unsigned varint
//	member  the rest
const (
	deltaHolds  = byte(Holds)
	deltaGone   = byte(Gone)
	deltaPlaces = 3
)

// mostStored is the number of members up to which deltas may add members to a set. It is twice the
// largest size of a set, since a delta may be applied to a newer set.
const mostStored = 2 * LargestMaxMembers

// AppendDelta appends the change by p to dst. p.Action must be Store, and value must be the value
// on which p was decided. AppendDelta must be called before Apply. It returns false, and appends
// nothing, if the whole value has to be recorded, because value is empty or has another mode than p.
func (p *Plan) AppendDelta(dst, value []byte) (delta []byte, ok bool) {
	if len(value) == 0 || p.Action != Store || p.Effect == Nothing || modeOf(value) != p.Mode {
		return dst, false
	}
	effect := byte(p.Effect)
	if p.Effect == Holds && p.Mode == Places {
		effect = deltaPlaces
	}
	dst = append(dst, effect)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(p.Now))
	if p.Effect == Holds {
		dst = binary.AppendUvarint(dst, uint64(p.Until)-uint64(p.Now))
	}
	if effect == deltaPlaces {
		dst = binary.AppendUvarint(dst, uint64(p.Places))
	}
	return append(dst, p.Member...), true
}

// ApplyDelta returns value with the change of delta. It treats value and dst as [Plan.Apply] does.
// value must pass [Check] under mode; then the result does, too. delta may be any bytes. If delta
// is invalid, or the set would get more members than mostStored, ApplyDelta returns [ErrCorrupt]
// and does not change value.
//
// The mode of the result is mode, even if no member has several places. value may be newer than
// delta. When all deltas up to the state of value have been applied, the same members hold leases as
// before. A set never becomes empty, since an empty set is invalid: its last member stays, with an
// expired lease.
func ApplyDelta(mode Mode, value, dst, delta []byte) ([]byte, error) {
	p, ok := planOf(mode, delta)
	if !ok {
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
		p.Effect, p.Until, p.Places = Holds, p.Now, 1
	}
	return p.Apply(value, dst), nil
}

// CheckDelta returns nil if delta is valid for [ApplyDelta] under mode, otherwise [ErrCorrupt].
// delta may be any bytes.
func CheckDelta(mode Mode, delta []byte) error {
	if _, ok := planOf(mode, delta); !ok {
		return ErrCorrupt
	}
	return nil
}

// planOf returns the plan that delta describes under mode. ok is false if delta, which may be any
// bytes, is invalid, or if mode is not the mode of a set.
func planOf(mode Mode, delta []byte) (p Plan, ok bool) {
	if len(delta) < 9 || !known(mode) {
		return p, false
	}
	p.Mode, p.Now, p.Member = mode, getInstant(delta[1:]), delta[9:]
	switch {
	case delta[0] == deltaGone:
		p.Effect = Gone
	case delta[0] == deltaHolds && mode == Leases, delta[0] == deltaPlaces && mode == Places:
		if !p.cutHolding() {
			return p, false
		}
	default:
		return p, false
	}
	return p, len(p.Member) <= MaxMemberSize
}

// cutHolding removes from the beginning of p.Member the end of a lease and, in mode Places, the
// places, and puts them into p. It returns false if they are invalid.
func (p *Plan) cutHolding() bool {
	lease, n := binary.Uvarint(p.Member)
	if n <= 0 || lease > uint64(MaxLease) {
		return false
	}
	p.Effect, p.Until, p.Places = Holds, p.Now.Add(time.Duration(lease)), 1
	p.Member = p.Member[n:]
	if p.Mode != Places {
		return true
	}
	places, n := binary.Uvarint(p.Member)
	if n <= 0 || places < 1 || places > MaxPlaces {
		return false
	}
	p.Places, p.Member = int64(places), p.Member[n:]
	return true
}
