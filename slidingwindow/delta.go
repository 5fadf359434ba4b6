package slidingwindow

import (
	"encoding/binary"
	"math"
	"sort"

	"github.com/cellserver/cellserver/limit"
)

// A delta describes the change that a plan makes in a LOG or in BUCKETS, so that a long value need
// not be recorded as a whole. Its numbers are absolute: applying a delta twice has the same effect
// as once. The fields for a LOG:
//
//	flags    a byte: 1 entries were dropped, 2 entries were cut off
//	at       8 bytes, the instant of the entry that is now the newest
//	dropped  if flag 1: varint at - D, entries up to and with D are removed
//	cut      if flag 2: varint at - F, entries from F on are removed
//	units    varint, the units of the newest entry
//
// In any case, entries from at on are removed before the newest entry is added. The fields for
// BUCKETS:
//
//	slots    varint
//	start    8 bytes
//	slot     varint, the index of the current slot
//	emptied  varint, the number of slots that are empty now: the current one
//	         and those before it
//	depth    varint, the depth of the slot whose count has changed; slots if
//	         there is none
//	units    varint, the count of that slot, if there is one
//
// Numbers of 8 bytes are little-endian, and varints are unsigned. Differences wrap around. [Diff]
// writes deltas of other formats, which begin with a flag 4 and with 0 slots.
const (
	flagDropped = 1
	flagCut     = 2
	flagListed  = 4
)

// AppendDelta appends the change by p to dst. p.Action must be Store, and value must be the value
// on which p was decided. AppendDelta must be called before Apply. It returns false, and appends
// nothing, if the whole value has to be recorded: in other modes than LOG and BUCKETS, after a
// change of the windows, and for a new key.
func (p *Plan) AppendDelta(dst, value []byte) (delta []byte, ok bool) {
	switch {
	case p.replace || p.Action != Store:
		return dst, false
	case p.Mode == Log:
		return p.log.appendDelta(dst, value), true
	case p.Mode == Buckets:
		return p.buckets.appendDelta(dst), true
	}
	return dst, false
}

func (s *log) appendDelta(dst, value []byte) []byte {
	var before log
	size := before.decode(value)
	dropped := (s.head - before.head) & (size - 1)
	if dropped == 0 && s.base != before.base {
		dropped = size // the entries of a full ring were dropped together
	}
	at, flags := s.last.at, byte(0)
	total := s.base
	if s.kept > 0 {
		total = before.at(dropped + s.kept - 1).total
	}
	from := len(dst)
	dst = binary.LittleEndian.AppendUint64(append(dst, 0), uint64(at))
	if dropped > 0 {
		flags |= flagDropped
		dst = binary.AppendUvarint(dst, uint64(at)-uint64(before.at(dropped-1).at))
	}
	if dropped+s.kept < before.kept {
		if first := before.at(dropped + s.kept).at; first < at {
			flags |= flagCut
			dst = binary.AppendUvarint(dst, uint64(at)-uint64(first))
		}
	}
	dst[from] = flags
	return binary.AppendUvarint(dst, s.last.total-total)
}

func (s *buckets) appendDelta(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(s.slots))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(s.start))
	dst = binary.AppendUvarint(dst, uint64(s.slot))
	dst = binary.AppendUvarint(dst, uint64(min(max(s.shift, s.top), s.slots)))
	dst = binary.AppendUvarint(dst, uint64(s.top))
	if s.top < s.slots {
		dst = binary.AppendUvarint(dst, uint64(s.head))
	}
	return dst
}

// ApplyDelta returns value with the change of delta, which [Plan.AppendDelta] or [Diff] has made. It
// treats value and dst as [Plan.Apply] does. value must pass [Check] under mode; then the result
// does, too. delta may be any bytes. If mode is neither Log nor Buckets, delta is invalid, or the
// log would exceed its maximum number of entries, ApplyDelta returns [ErrCorrupt] and does not
// change value.
//
// value may be newer than delta. In that case counts of the result may be too small, because they
// are reduced, the oldest first, so that the sum of the counts fits into int64. Once all deltas up
// to the state of value have been applied, the result is the same as value was. A delta for another
// number of slots does not change value, since a later effect must have replaced the value.
func ApplyDelta(mode Mode, value, dst, delta []byte) ([]byte, error) {
	d := deltaReader{rest: delta}
	switch listed := isListed(mode, delta); {
	case mode == Log && listed:
		return d.applyLogList(value, dst)
	case mode == Log:
		return d.applyLog(value, dst)
	case mode == Buckets && listed:
		return d.applyBucketsList(value)
	case mode == Buckets:
		return d.applyBuckets(value)
	}
	return value, ErrCorrupt
}

// deltaReader decodes a delta. rest is the part that has not been read, and broken says that the
// delta is invalid.
type deltaReader struct {
	rest   []byte
	broken bool
}

func (d *deltaReader) varint() uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		d.broken = true
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

// upTo reads a varint from 0 to most. A larger number makes the delta invalid.
func (d *deltaReader) upTo(most uint64) int64 {
	n := d.varint()
	if n > most {
		d.broken = true
		return 0
	}
	return int64(n)
}

func (d *deltaReader) instant() limit.Instant {
	if len(d.rest) < word {
		d.broken = true
		return 0
	}
	t := limit.Instant(getInt(d.rest, 0))
	d.rest = d.rest[word:]
	return t
}

// CheckDelta returns nil if delta is valid for [ApplyDelta] under mode, otherwise [ErrCorrupt].
// delta may be any bytes.
func CheckDelta(mode Mode, delta []byte) error {
	d := deltaReader{rest: delta}
	switch listed := isListed(mode, delta); {
	case mode == Log && listed:
		d.readLogList()
	case mode == Log:
		d.readLog()
	case mode == Buckets && listed:
		d.readBucketsList()
	case mode == Buckets:
		d.readBuckets()
	default:
		return ErrCorrupt
	}
	if d.broken {
		return ErrCorrupt
	}
	return nil
}

// logDelta is a decoded delta of a LOG. dropped and cut are the instants D and F of the format;
// they are [limit.MinInstant] and at if the delta does not have them. drops says that the delta has
// D.
type logDelta struct {
	drops            bool
	at, dropped, cut limit.Instant
	units            int64
}

func (d *deltaReader) readLog() (l logDelta) {
	if len(d.rest) == 0 || d.rest[0] > flagDropped|flagCut {
		d.broken = true
		return l
	}
	flags := d.rest[0]
	d.rest = d.rest[1:]
	l.drops, l.at = flags&flagDropped != 0, d.instant()
	l.dropped, l.cut = limit.MinInstant, l.at
	if l.drops {
		l.dropped = limit.Instant(uint64(l.at) - d.varint())
	}
	if flags&flagCut != 0 {
		l.cut = limit.Instant(uint64(l.at) - d.varint())
	}
	l.units = d.upTo(math.MaxInt64)
	if len(d.rest) > 0 || l.units == 0 || l.cut > l.at || l.drops && l.dropped >= l.cut {
		d.broken = true
	}
	return l
}

func (d *deltaReader) applyLog(value, dst []byte) ([]byte, error) {
	l := d.readLog()
	if d.broken {
		return value, ErrCorrupt
	}
	p := Plan{Mode: Log}
	s := &p.log
	size := s.decode(value)
	if l.drops {
		s.drop(sort.Search(s.kept, func(i int) bool { return s.at(i).at > l.dropped }))
	}
	s.kept = sort.Search(s.kept, func(i int) bool { return s.at(i).at >= l.cut })
	used := s.used()
	if units := min(l.units, math.MaxInt64-int64(used)); units > 0 {
		s.last, s.placed = entry{at: l.at, total: s.base + used + uint64(units)}, true
	}
	if s.size() > size && size == largestRing {
		return value, ErrCorrupt
	}
	return p.applyLog(value, dst), nil
}

// bucketsDelta is a decoded delta of BUCKETS. top is the field depth of the format.
type bucketsDelta struct {
	slots, slot, emptied, top, units int64
	start                            limit.Instant
}

func (d *deltaReader) readBuckets() (b bucketsDelta) {
	b.slots = d.upTo(MaxSlots)
	b.start = d.instant()
	b.slot = d.upTo(uint64(max(b.slots-1, 0)))
	b.emptied = d.upTo(uint64(b.slots))
	b.top = d.upTo(uint64(b.slots))
	if b.top < b.slots {
		b.units = d.upTo(math.MaxInt64)
	}
	if len(d.rest) > 0 || b.slots < MinSlots {
		d.broken = true
	}
	return b
}

func (d *deltaReader) applyBuckets(value []byte) ([]byte, error) {
	b := d.readBuckets()
	if d.broken {
		return value, ErrCorrupt
	}
	var s buckets
	s.decode(value)
	if int64(s.slots) != b.slots {
		return value, nil
	}
	s.start, s.slot, s.shift, s.top, s.head = b.start, int(b.slot), int(b.emptied), int(b.top), b.units
	s.encode(value)
	s.fit()
	return value, nil
}
