package idempotency

import (
	"encoding/binary"
)

// A delta describes the change of a value that remembers calls before and after it. It is absolute,
// so that applying it twice, or to a newer value, is harmless once the later deltas have been
// applied, too:
//
//	flags   a byte: 1 a record was added, 2 the state follows as a whole, 4 a delta of the state follows,
//	        8 several records were added
//	first   varint, the number of the first slot that is left
//	added   if flag 1: varint, the number of the record's first slot, then one or two slots;
//	        if flag 8: varint, the number of the first record's first slot, varint, the number of
//	        slots, then the slots
//	state   if flag 2 or 4: the rest
const (
	deltaAdded = 1
	deltaWhole = 2
	deltaState = 4
	deltaMany  = 8
)

// AppendDelta appends the part of the delta that describes the plan to dst. records is the section
// on which the plan was decided. The part is complete if the state does not change; otherwise the
// caller appends the state and calls [MarkState]. [Plan.Apply] must not have been called. The plan
// must leave a record.
func (p *Plan) AppendDelta(dst, records []byte) []byte {
	s := open(records)
	from, head := len(dst), uint32(0)
	for range p.drop {
		head += width(s.slot(s.at(head)))
	}
	dst = binary.AppendUvarint(append(dst, 0), uint64(s.first+head))
	if len(p.added) == 0 {
		return dst
	}
	dst[from] = deltaAdded
	dst = binary.AppendUvarint(dst, uint64(s.first+s.used))
	if n := len(p.added) / recordSize; n > int(width(p.added)) {
		dst[from] = deltaMany
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	return append(dst, p.added...)
}

// MarkState says that delta, which [Plan.AppendDelta] has begun, is followed by the state: as a
// whole, or as a delta of its own.
func MarkState(delta []byte, whole bool) {
	if whole {
		delta[0] |= deltaWhole
	} else {
		delta[0] |= deltaState
	}
}

// Delta is a decoded delta. Its slices refer to the bytes that [ReadDelta] has read.
type Delta struct {
	// State is the new state if Whole is true, a delta of the state if Part is true, and otherwise
	// empty, because the state stays the same.
	State       []byte
	Whole, Part bool

	first, number uint32
	records       []byte // the added records in their stored form; nil if there are none
}

// ReadDelta decodes delta, which may be any bytes. The error is [ErrCorrupt]. The caller checks
// State.
func ReadDelta(delta []byte) (d Delta, err error) {
	if len(delta) == 0 {
		return d, ErrCorrupt
	}
	flag, rest := delta[0], delta[1:]
	d.Whole, d.Part = flag&deltaWhole != 0, flag&deltaState != 0
	ok := flag <= deltaAdded|deltaWhole|deltaState|deltaMany && !(d.Whole && d.Part) && flag&(deltaAdded|deltaMany) != deltaAdded|deltaMany
	number := func() uint32 {
		n, size := binary.Uvarint(rest)
		if size <= 0 || n > 1<<32-1 {
			ok = false
			return 0
		}
		rest = rest[size:]
		return uint32(n)
	}
	d.first = number()
	if flag&(deltaAdded|deltaMany) != 0 {
		d.number = number()
		n := 1
		if flag&deltaMany != 0 {
			n = int(number())
		} else if len(rest) >= recordSize {
			n = int(width(rest))
		}
		if ok = ok && n > 0 && n <= len(rest)/recordSize; ok {
			d.records, rest = rest[:n*recordSize:n*recordSize], rest[n*recordSize:]
			ok = whole(d.records)
		}
	}
	if d.State = rest; !ok || !d.Whole && !d.Part && len(rest) > 0 {
		return Delta{}, ErrCorrupt
	}
	return d, nil
}

// whole reports whether slots is a sequence of valid records.
func whole(slots []byte) bool {
	for len(slots) > 0 {
		n := int(width(slots)) * recordSize
		if flags(slots) > allFlags || n > len(slots) || n > recordSize && !zero(slots[recordSize+16:n]) {
			return false
		}
		slots = slots[n:]
	}
	return true
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// Apply returns value with the records changed by the delta, and with the given state, which the
// caller has computed from [Delta.State]. It treats value, state and dst as [Plan.Apply] does. value
// must pass [Check]; then the result does, too, if state does.
//
// If the delta adds records that value has, value is newer, and they stay. If a record before them
// is missing, the key was deleted and created again after the delta, and a later effect replaces
// the value; then the records before them are dropped.
func (d *Delta) Apply(value, state, dst []byte) []byte {
	_, records := Split(value)
	s := open(records)
	head, drop := uint32(0), uint32(0)
	for head < s.used && int32(d.first-s.first-head) > 0 {
		head += width(s.slot(s.at(head)))
		drop++
	}
	add := d.records
	if add != nil {
		switch behind := int32(d.number - s.first - s.used); {
		case behind < 0:
			add = nil
		case behind > 0:
			head, drop = s.used, s.calls
			s.first = d.number - s.used
		}
	}
	used := s.used - head + uint32(len(add)/recordSize)
	size := sizeFor(used, s.size)
	if size > maxCap {
		return value
	}
	if s.size != size {
		return relay(&s, drop, add, size, state, dst)
	}
	if first := s.first; len(state)+len(records) != len(value) || len(state) > 0 && &state[0] != &value[0] {
		value, s = move(&s, state, dst)
		s.first = first
	}
	for range drop {
		s.drop()
	}
	s.putAll(add)
	s.save()
	return value
}
