package reservation

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/cellserver/cellserver/limit"
)

// HoldUnits returns the hold of units that a call has charged to the given slot of a window.
func HoldUnits(slot limit.Instant, units int64) Hold {
	return Hold{At: slot, Units: units, Back: units, Ready: limit.MinInstant}
}

// HoldNothing returns the Hold for a call that was not charged any units.
func HoldNothing() Hold { return Hold{Ready: limit.MinInstant, Void: true} }

// SettleUnits ends the reservation of a window at a position. It returns the slot, and how many units
// can be given back to it if actual units remain charged.
func (s *Section) SettleUnits(at int, actual int64) (slot limit.Instant, back int64) {
	h := s.At(at)
	s.remove(at)
	return h.At, h.Returns(actual)
}

// Returns returns the number of units that are given back to a window if actual units remain charged.
func (h *Hold) Returns(actual int64) int64 {
	if h.Void {
		return 0
	}
	return max(0, min(h.Back, h.Units-actual))
}

// HeldFrom returns a function that returns the number of units that can be given back in the slots after one and up to
// another. Slots before first have none. Each call of the function must be for earlier slots than the call before, so
// that all calls together take time linear in the number of reservations.
func (s *Section) HeldFrom(first limit.Instant) func(after, upTo limit.Instant) int64 {
	s.bySlot()
	next := len(s.positions) - 1
	return func(after, upTo limit.Instant) (units int64) {
		for ; next >= 0; next-- {
			b := s.holds[s.positions[next]:]
			slot := limit.Instant(int64At(b, slotAt))
			if slot <= after || slot < first {
				break
			}
			if slot <= upTo {
				units = limit.SatAdd(units, int64At(b, foldAt))
			}
		}
		return units
	}
}

// bySlot sets positions to the positions of the reservations that are not void, in the order of
// their slots.
func (s *Section) bySlot() {
	s.positions = s.positions[:0]
	for at := 0; at < len(s.holds); at += width(s.holds[at:]) {
		if !void(s.holds[at:]) {
			s.positions = append(s.positions, at)
		}
	}
	slices.SortStableFunc(s.positions, func(a, b int) int {
		return cmp.Compare(int64At(s.holds[a:], slotAt), int64At(s.holds[b:], slotAt))
	})
}

// TakeHeld takes up to n units from the newest reservations of a window, and calls take with each
// slot and the units that can then no longer be given back. take returns the number of these units
// that the slot had. Units of a slot that has ended no longer count, and are not subtracted from n.
func (s *Section) TakeHeld(n int64, take func(slot limit.Instant, units int64) int64) {
	s.bySlot()
	for i := len(s.positions) - 1; i >= 0 && n > 0; i-- {
		b := s.holds[s.positions[i]:]
		back := int64At(b, foldAt)
		if units := min(n, back); units > 0 {
			n -= take(limit.Instant(int64At(b, slotAt)), units)
			binary.LittleEndian.PutUint64(b[foldAt:], uint64(back-units))
		}
	}
}
