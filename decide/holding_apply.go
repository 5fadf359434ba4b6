package decide

import (
	"encoding/binary"

	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/slidingwindow"
)

// applyHolding does what Apply does, for an entry that has reservations after the change.
func (p *Plan) applyHolding(value, dst []byte) []byte {
	h, m := &p.holding, &p.memory
	inPlace := !h.copied && !h.drops && h.section.Size() == len(h.before) && m.before == m.after && (!m.after || m.records.InPlace())
	if inPlace {
		// value may be a copy of the bytes on which the call was decided, so the slices have to
		// refer to value.
		end := len(h.stored) + len(h.records)
		h.state, h.records = value[:len(h.stored):len(h.stored)], value[len(h.stored):end:end]
	} else {
		h.own()
	}
	front := p.heldState(h.state)
	if m.after {
		var before []byte
		if inPlace {
			before = value[:len(h.stored)+len(h.records)]
		}
		front = m.records.Apply(before, h.records, front, dst)
	}
	if h.drops {
		return append(dst[:0], front...)
	}
	if inPlace && len(front)+len(h.before) == len(value) && &front[0] == &value[0] {
		return h.section.Append(value[:len(front)])
	}
	if cap(dst) == 0 || len(front) == 0 || &front[0] != &dst[:1][0] {
		dst = append(dst[:0], front...)
	} else {
		dst = front
	}
	if cap(h.work)+cap(m.spare)+cap(m.copied) > maxSpare {
		h.work, m.spare, m.copied = nil, nil, nil
	}
	return h.section.Append(dst)
}

// heldState returns the state of the limiter after the change. state is the state on which the call
// was decided. The result is in the memory of state or in other memory.
func (p *Plan) heldState(state []byte) []byte {
	h, m := &p.holding, &p.memory
	if h.keeps {
		return state
	}
	if h.unused || len(state) == 0 {
		state = nil // otherwise m.spare and state would share the memory of this plan
	}
	next := p.apply(state, m.spare[:0])
	if cap(next) > cap(m.spare) && (len(state) == 0 || &next[:1][0] != &state[0]) {
		m.spare = next[:0]
	}
	return next
}

// appendHoldingDelta does what AppendDelta does, for an entry that has reservations after the
// change.
func (p *Plan) appendHoldingDelta(dst []byte) (delta []byte, ok bool) {
	h, m := &p.holding, &p.memory
	if h.before == nil || h.drops || m.before != m.after || p.Kind.Plain() != h.kind {
		return dst, false
	}
	from := len(dst)
	if delta, ok = h.section.AppendDelta(append(dst, reservation.DeltaMark), h.before); !ok {
		return dst, false
	}
	if m.after {
		delta[from] |= reservation.DeltaRecords
		at := len(delta)
		delta = m.records.AppendDelta(delta, h.records)
		m.spare = append(m.spare[:0], delta[at:]...)
		delta = append(binary.AppendUvarint(delta[:at], uint64(len(m.spare))), m.spare...)
	}
	switch {
	case h.keeps && !h.copied:
		return delta, true
	case !h.copied && !h.unused:
		if delta, ok = p.appendDelta(delta, h.state); ok {
			delta[from] |= reservation.DeltaPart
			return delta, true
		}
	}
	m.copied = append(m.copied[:0], h.state...)
	next := p.heldState(m.copied)
	if len(next) <= maxWholeState {
		delta[from] |= reservation.DeltaWhole
		return append(delta, next...), true
	}
	if p.Kind.Plain().IsWindow() {
		if delta, ok = slidingwindow.Diff(p.Kind.Plain().WindowMode(), delta, h.stored, next); ok {
			delta[from] |= reservation.DeltaPart
			return delta, true
		}
	}
	return delta[:from], false
}
