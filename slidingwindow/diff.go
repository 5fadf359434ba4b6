package slidingwindow

import (
	"encoding/binary"

	"github.com/cellserver/cellserver/limit"
)

// A delta of [Diff] lists the entries or slots that have changed, wherever they are. Like the
// deltas of [Plan.AppendDelta], its numbers are absolute. The fields for a LOG:
//
//	flags    a byte: 4, and 1 if entries were dropped
//	at       8 bytes, the instant of the newest entry; later entries are removed
//	units    varint, the units of the newest entry; 0 if no entries are left, and
//	         then nothing follows
//	dropped  if flag 1: varint at - D, entries up to and with D are removed
//	changed  for each other entry that has changed, the latest first:
//	         varint, the time from the entry to the one listed before, or to at
//	         varint, the units of the entry; 0 if it was removed
//
// The fields for BUCKETS:
//
//	0        a byte
//	slots    varint
//	start    8 bytes
//	slot     varint, the index of the current slot
//	changed  for the current slot and each slot that has changed, by position:
//	         varint, the number of positions since the slot listed before
//	         varint, the count of the slot
//
// The newest entry and the current slot are always listed, since later calls may have added units
// to them. In a value that is newer than the delta, only entries and slots that are later can then
// have more units than after the change. Later deltas set these again. The later entries of a LOG
// are removed, and the later slots of BUCKETS are in the places of the oldest slots. So counts are
// reduced from the oldest on if their sum does not fit into int64.

// Diff appends to dst a delta for [ApplyDelta] that describes the change from before to after, and
// returns true. It returns dst as it was, and false, if the whole value has to be recorded: in
// other modes than LOG and BUCKETS, if the window, the phase or the number of slots has changed,
// and if the delta would not be shorter than after. Applying the delta to before gives the state
// after, except that a LOG may get a ring of another capacity.
//
// Diff takes time linear in the values, and allocates only to extend dst. before and after must
// pass [Check] under mode.
func Diff(mode Mode, dst, before, after []byte) (delta []byte, ok bool) {
	from := len(dst)
	delta = dst
	switch mode {
	case Log:
		delta, ok = diffLogs(dst, before, after)
	case Buckets:
		delta, ok = diffBuckets(dst, before, after)
	}
	if !ok || len(delta)-from >= len(after) {
		return dst, false
	}
	return delta, true
}

func diffLogs(dst, before, after []byte) (delta []byte, ok bool) {
	var old, s log
	old.decode(before)
	s.decode(after)
	if old.window != s.window {
		return dst, false
	}
	from := len(dst)
	dst = s.appendNewest(dst)
	if s.kept == 0 {
		return dst, true
	}
	newest := s.at(s.kept - 1).at
	dropped := old.from(s.at(0).at)
	if dropped > 0 {
		dst[from] |= flagDropped
		dst = binary.AppendUvarint(dst, uint64(newest)-uint64(old.at(dropped-1).at))
	}
	listed := newest
	was, is := old.backward(old.from(newest), dropped), s.backward(s.kept-1, 0)
	for (was.more() || is.more()) && len(dst)-from < len(after) {
		at := max(was.before.at, is.before.at)
		if n := is.take(at); was.take(at) != n {
			dst = appendEntry(dst, listed, at, n)
			listed = at
		}
	}
	return dst, true
}

// backward walks over the entries of a log from the newest to the oldest.
type backward struct {
	log *log
	// before is the next entry, the one at i-1. The walk ends before the entry at end. There before
	// has the least instant.
	i, end int
	before entry
}

// backward returns a walk over the entries i-1, ..., end.
func (s *log) backward(i, end int) backward {
	b := backward{log: s, i: i, end: end}
	b.read()
	return b
}

func (b *backward) more() bool { return b.i > b.end }

func (b *backward) read() {
	b.before = entry{at: limit.MinInstant, total: b.log.before(b.i)}
	if b.more() {
		b.before.at = b.log.at(b.i - 1).at
	}
}

// take returns the units of the next entry, and goes on, if the entry is at the instant at.
// Otherwise take returns 0.
func (b *backward) take(at limit.Instant) (units uint64) {
	if b.more() && b.before.at == at {
		total := b.before.total
		b.i--
		b.read()
		units = total - b.before.total
	}
	return units
}

// appendNewest appends the first three fields of the delta after which s is the log.
func (s *log) appendNewest(dst []byte) []byte {
	at, units := limit.Instant(0), uint64(0)
	if s.kept > 0 {
		at, units = s.at(s.kept-1).at, s.units(s.kept-1)
	}
	dst = binary.LittleEndian.AppendUint64(append(dst, flagListed), uint64(at))
	return binary.AppendUvarint(dst, units)
}

// appendEntry appends an entry that has changed. listed is the instant of the one listed before.
func appendEntry(dst []byte, listed, at limit.Instant, units uint64) []byte {
	dst = binary.AppendUvarint(dst, uint64(listed)-uint64(at))
	return binary.AppendUvarint(dst, units)
}

func diffBuckets(dst, before, after []byte) (delta []byte, ok bool) {
	var old, s buckets
	old.decode(before)
	s.decode(after)
	if old.window != s.window || old.slots != s.slots ||
		floorMod(int64(old.start), s.window) != floorMod(int64(s.start), s.window) {
		return dst, false
	}
	dst = s.appendCurrent(dst)
	listed := 0
	for i := range s.slots {
		if count := slotCount(s.ring, i); i == s.slot || count != slotCount(old.ring, i) {
			dst = appendSlot(dst, i-listed, count)
			listed = i
		}
	}
	return dst, true
}

// appendCurrent appends the first four fields of the delta after which s is the state.
func (s *buckets) appendCurrent(dst []byte) []byte {
	dst = binary.AppendUvarint(append(dst, 0), uint64(s.slots))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(s.start))
	return binary.AppendUvarint(dst, uint64(s.slot))
}

// appendSlot appends a slot that has changed.
func appendSlot(dst []byte, skipped int, count int64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(skipped)), uint64(count))
}
