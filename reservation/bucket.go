package reservation

import (
	"encoding/binary"
	"time"

	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
)

// fold is the effect of any number of charges and refunds on the TAT x of a bucket: x becomes
// max(x + add, least). A charge of d at t, max(x, t) + d, has that form, and so has a refund of d at t,
// max(x - d, t). The effect of one fold after another has it, too. All instants and durations are in
// nanoseconds.
type fold struct{ add, least int64 }

// nothing is the fold that changes no TAT.
var nothing = fold{0, int64(limit.MinInstant)}

func charge(at limit.Instant, d time.Duration) fold {
	return fold{int64(d), limit.SatAdd(int64(at), int64(d))}
}

func refund(at limit.Instant, d time.Duration) fold {
	return fold{limit.SatSub(0, int64(d)), int64(at)}
}

// then returns the fold that has the effect of f followed by the effect of g.
func (f fold) then(g fold) fold {
	return fold{limit.SatAdd(f.add, g.add), max(limit.SatAdd(f.least, g.add), g.least)}
}

// of returns the TAT after f, if it was x before.
func (f fold) of(x limit.Instant) limit.Instant {
	return limit.Instant(max(limit.SatAdd(int64(x), f.add), f.least))
}

func foldIn(hold []byte) fold { return fold{int64At(hold, foldAt), int64At(hold, foldAt+8)} }

func (f fold) put(hold []byte) {
	binary.LittleEndian.PutUint64(hold[foldAt:], uint64(f.add))
	binary.LittleEndian.PutUint64(hold[foldAt+8:], uint64(f.least))
}

// HoldTokens returns the hold of units tokens that are charged to a bucket at now.
func HoldTokens(now limit.Instant, units int64) Hold {
	return Hold{At: now, Units: units, Ready: limit.MinInstant, after: nothing}
}

// held returns the effect of a charge of units tokens at the instant at. interval is T, the time of
// one token.
func held(at limit.Instant, units int64, interval time.Duration) fold {
	if units == 0 {
		return nothing
	}
	return charge(at, time.Duration(limit.SatMul(units, int64(interval))))
}

// TAT returns the TAT of a bucket that follows from Start, its reservations and what has happened since.
// interval is T, the time of one token.
func (s *Section) TAT(interval time.Duration) limit.Instant {
	x := s.Start
	for at := 0; at < len(s.holds); at += width(s.holds[at:]) {
		if b := s.holds[at:]; !void(b) {
			x = held(limit.Instant(int64At(b, slotAt)), int64At(b, unitsAt), interval).of(x)
			x = foldIn(b).of(x)
		}
	}
	return x
}

// last returns the position of the last reservation before to that is not void, or -1.
func (s *Section) last(to int) int {
	found := -1
	for at := 0; at < to; at += width(s.holds[at:]) {
		if !void(s.holds[at:]) {
			found = at
		}
	}
	return found
}

// Holds reports whether there is a live reservation that is not void.
func (s *Section) Holds() bool { return s.last(len(s.holds)) >= 0 }

// follow adds f to the effect of the calls after the reservation at a position; the position -1
// stands for Start.
func (s *Section) follow(at int, f fold) {
	if at < 0 {
		s.Start = f.of(s.Start)
		return
	}
	foldIn(s.holds[at:]).then(f).put(s.holds[at:])
}

// Charged records that one call has changed the TAT of the bucket from before to after at now. Both
// are in the present rate of the bucket.
func (s *Section) Charged(now, before, after limit.Instant) {
	at := s.last(len(s.holds))
	switch {
	case at < 0:
	case after < before:
		s.follow(at, refund(now, before.Sub(after)))
	case after > max(before, now):
		s.follow(at, charge(now, after.Sub(max(before, now))))
	}
}

// Rescale converts the reservations of a bucket whose T changes at now. The number of tokens that
// each instant stands for does not change.
func (s *Section) Rescale(now limit.Instant, from, to time.Duration) {
	scale := func(d int64) int64 {
		if d < 0 {
			return -limit.MulDivFloor(limit.SatSub(0, d), int64(to), int64(from))
		}
		return limit.MulDivCeil(d, int64(to), int64(from))
	}
	about := func(t int64) int64 {
		if t == int64(limit.MinInstant) {
			return t
		}
		return limit.SatAdd(int64(now), scale(limit.SatSub(t, int64(now))))
	}
	s.Start = limit.Instant(about(int64(s.Start)))
	for at := 0; at < len(s.holds); at += width(s.holds[at:]) {
		if b := s.holds[at:]; !void(b) {
			binary.LittleEndian.PutUint64(b[slotAt:], uint64(about(int64At(b, slotAt))))
			f := foldIn(b)
			fold{scale(f.add), about(f.least)}.put(b)
		}
	}
}

// Void marks all reservations as void, because the limiter was converted or is as if it had never been used. The units
// of a void reservation cannot be given back. Void reservations fit every [Form].
func (s *Section) Void() {
	for at := 0; at < len(s.holds); at += width(s.holds[at:]) {
		s.holds[at+flagsAt] |= flagVoid
		clear(s.holds[at+foldAt : at+holdSize])
	}
}

// SettleTokens ends the reservation of a bucket at a position; actual of its units remain charged.
// The TAT of the bucket is [Section.TAT] afterwards, unless the reservation was void.
func (s *Section) SettleTokens(at int, actual int64, interval time.Duration) {
	if h := s.At(at); !h.Void {
		s.follow(s.last(at), held(h.At, actual, interval).then(h.after))
	}
	s.remove(at)
}

// Lapse ends all reservations that have passed their time at now, and calls ended for each of them, in
// order. It also removes the links that are forgotten. bucket says whether the limiter is a bucket; then its
// TAT is [Section.TAT] afterwards, if a reservation has ended that was not void.
func (s *Section) Lapse(now limit.Instant, bucket bool, ended func(h *Hold)) {
	kept, last, linked := 0, -1, false
	var lapsed Hold // the last reservation that has ended
	for at := 0; at < len(s.holds); {
		b := s.holds[at:]
		n := width(b)
		at += n
		if end(b) <= now {
			if isLink(b) {
				linked = true
				continue
			}
			lapsed = read(b)
			if bucket && !lapsed.Void {
				s.follow(last, lapsed.after)
			}
			ended(&lapsed)
			continue
		}
		copy(s.holds[kept:], b[:n])
		b = s.holds[kept:]
		if isLink(b) && lapsed.Part.Linked && idempotency.HashIn(b) == lapsed.Hash {
			linked = true
			until := lapsed.End.Add(s.Memory)
			if until <= now {
				continue
			}
			binary.LittleEndian.PutUint64(b[endAt:], uint64(until))
		}
		if !void(b) {
			last = kept
		}
		kept += n
	}
	if s.holds = s.holds[:kept]; linked {
		s.boundLinks()
	}
	s.Keep(now)
}
