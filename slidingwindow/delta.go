package slidingwindow

import (
	"encoding/binary"
	"math"
	"sort"

	"github.com/cellserver/cellserver/limit"
)

// A delta is the change by a plan in a LOG or in BUCKETS, in absolute terms, so that a long value
// need not be recorded as a whole. LOG:
//
//	flags    a byte: 1 some entries were dropped, 2 some were cut off
//	at       8 bytes, the instant of the entry that is now the newest
//	dropped  if flag 1: varint at - D, entries up to and with D are gone
//	cut      if flag 2: varint at - F, entries from F on were gone before
//	units    varint, what the newest entry counts
//
// Entries from at on are removed before the newest is added in any case. BUCKETS:
//
//	slots    varint
//	start    8 bytes
//	slot     varint, the current one
//	emptied  varint, so many slots count nothing: the current one and those before
//	depth    varint, so many slots before the current one is the one that
//	         counts something else now; slots if there is none
//	units    varint, what it counts, if there is one
//
// Numbers of 8 bytes are little-endian, varints unsigned; differences wrap around.
const (
	flagDropped = 1
	flagCut     = 2
)

// AppendDelta appends to dst the change by p, whose Action is Store, in value, on which p was
// decided. It must be called before Apply. It returns false if there is no delta and the whole
// value has to be recorded: for other modes, after a change of the windows, and for a new key.
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
		dropped = size // a full ring that was dropped as a whole
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

// ApplyDelta returns value with the change of delta, and treats value and dst as [Plan.Apply] does.
// value must pass [Check] under mode; then so does the result. delta may be any bytes: an invalid
// delta is [ErrCorrupt], and does not change value.
//
// value may be newer than delta: once all deltas up to the state of value have been applied, it is
// the same as before. In between it may count less than it should, if more would not fit. A delta
// for another number of slots does not change value, since a later effect must have replaced the
// value.
func ApplyDelta(mode Mode, value, dst, delta []byte) ([]byte, error) {
	d := deltaReader{rest: delta}
	switch mode {
	case Log:
		return d.applyLog(value, dst)
	case Buckets:
		return d.applyBuckets(value)
	}
	return value, ErrCorrupt
}

// deltaReader decodes a delta; broken says that the delta is invalid.
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

// upTo reads a number from 0 to most.
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

// CheckDelta returns [ErrCorrupt] unless delta, which may be any bytes, is valid for [ApplyDelta]
// under mode.
func CheckDelta(mode Mode, delta []byte) error {
	d := deltaReader{rest: delta}
	switch mode {
	case Log:
		d.readLog()
	case Buckets:
		d.readBuckets()
	default:
		return ErrCorrupt
	}
	if d.broken {
		return ErrCorrupt
	}
	return nil
}

// logDelta is a decoded delta of a LOG.
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

// bucketsDelta is a decoded delta of BUCKETS.
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
	s.start, s.slot, s.shift, s.top, s.head = b.start, int(b.slot), int(b.emptied), int(b.top), 0
	s.encode(value)
	if room := math.MaxInt64 - s.total(0, s.slots); b.top < b.slots {
		putInt(s.ring, s.position(s.top), min(b.units, room))
	}
	return value, nil
}
