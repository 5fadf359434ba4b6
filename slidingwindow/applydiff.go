package slidingwindow

import (
	"math"

	"github.com/cellserver/cellserver/limit"
)

// isListed reports whether delta begins like one of Diff.
func isListed(mode Mode, delta []byte) bool {
	if len(delta) == 0 {
		return false
	}
	return mode == Log && delta[0]&^flagDropped == flagListed || mode == Buckets && delta[0] == 0
}

// logList is a decoded delta of Diff for a LOG. dropped is the instant D of the format; it is valid
// only if drops is true. changed has the entries that have changed, which are valid.
type logList struct {
	drops       bool
	at, dropped limit.Instant
	units       int64
	changed     deltaReader
}

func (d *deltaReader) readLogList() (l logList) {
	l.drops = d.rest[0]&flagDropped != 0
	d.rest = d.rest[1:]
	l.at = d.instant()
	l.units = d.upTo(math.MaxInt64)
	if l.drops {
		if l.dropped = limit.Instant(uint64(l.at) - d.varint()); l.dropped >= l.at {
			d.broken = true
		}
	}
	if l.units == 0 && (l.drops || len(d.rest) > 0) {
		d.broken = true
	}
	l.changed = *d
	for at := l.at; len(d.rest) > 0 && !d.broken; {
		earlier, _ := d.next(at)
		if earlier >= at || l.drops && earlier <= l.dropped {
			d.broken = true
		}
		at = earlier
	}
	return l
}

// next reads the next entry that has changed. at is the instant of the one listed before.
func (d *deltaReader) next(at limit.Instant) (earlier limit.Instant, units int64) {
	earlier = limit.Instant(uint64(at) - d.varint())
	return earlier, d.upTo(math.MaxInt64)
}

func (d *deltaReader) applyLogList(value, dst []byte) ([]byte, error) {
	l := d.readLogList()
	switch {
	case d.broken:
		return value, ErrCorrupt
	case l.units == 0:
		return Clear(Log, value), nil
	}
	var s log
	size := s.decode(value)
	if l.drops {
		s.drop(s.from(l.dropped + 1))
	}
	if l.at < limit.MaxInstant {
		s.kept = s.from(l.at + 1)
	}
	added := l.added(&s)
	if s.kept+added > largestRing {
		return value, ErrCorrupt
	}
	if s.kept+added > size {
		s.kept += added // the added entries count for the capacity
		size = s.capacity(size)
		s.kept -= added
		fresh := sized(dst, logHeader+size*entrySize)
		clear(fresh)
		s.relay(fresh, value)
		value = fresh
		s.ring, s.head = value[logHeader:], 0
	}
	s.merge(&l, added)
	s.encodeHeader(value, s.head)
	return value, nil
}

// added returns the number of listed entries that s does not have, without those that are removed.
func (l *logList) added(s *log) (n int) {
	at, units, rest := l.at, l.units, l.changed
	for {
		if i := s.from(at); units > 0 && (i == s.kept || s.at(i).at != at) {
			n++
		}
		if len(rest.rest) == 0 {
			return n
		}
		at, units = rest.next(at)
	}
}

// merge makes the changes of l. The ring has room for added entries beyond the kept ones. From the
// newest entry back to the earliest listed one, merge moves the entries to the end of that room, and
// gives them totals that end with the present newest total. Then remove closes the gap.
func (s *log) merge(l *logList, added int) {
	at, units, rest := l.at, l.units, l.changed
	i, end, newest := s.kept, s.kept+added, s.before(s.kept)
	s.kept = end
	room, total := uint64(math.MaxInt64), newest
	place := func(at limit.Instant, units uint64) {
		if units = min(units, room); units > 0 {
			end--
			s.put(end, entry{at: at, total: total})
			total -= units
			room -= units
		}
	}
	for {
		for ; i > 0 && s.at(i-1).at > at; i-- {
			place(s.at(i-1).at, s.units(i-1))
		}
		if i > 0 && s.at(i-1).at == at {
			i--
		}
		place(at, uint64(units))
		if len(rest.rest) == 0 {
			break
		}
		at, units = rest.next(at)
	}
	s.remove(i, end, total-s.before(i))
	s.fit()
}

// fit reduces the units of the oldest entries so that the sum of all fits into int64. Entries
// without units are dropped.
func (s *log) fit() {
	used := s.used()
	if used <= math.MaxInt64 {
		return
	}
	base := s.base + used - math.MaxInt64
	s.drop(s.reaching(used - math.MaxInt64 + 1))
	s.base = base
}

// bucketsList is a decoded delta of Diff for BUCKETS. changed has the slots that have changed, and
// they are valid.
type bucketsList struct {
	slots, slot int64
	start       limit.Instant
	changed     deltaReader
}

func (d *deltaReader) readBucketsList() (b bucketsList) {
	d.rest = d.rest[1:]
	b.slots = d.upTo(MaxSlots)
	b.start = d.instant()
	b.slot = d.upTo(uint64(max(b.slots-1, 0)))
	if b.slots < MinSlots {
		d.broken = true
	}
	b.changed = *d
	least := uint64(0)
	for rest := uint64(max(b.slots-1, 0)); len(d.rest) > 0 && !d.broken; least = 1 {
		skipped := uint64(d.upTo(rest))
		if skipped < least {
			d.broken = true
		}
		rest -= skipped
		d.upTo(math.MaxInt64)
	}
	return b
}

func (d *deltaReader) applyBucketsList(value []byte) ([]byte, error) {
	b := d.readBucketsList()
	if d.broken {
		return value, ErrCorrupt
	}
	var s buckets
	s.decode(value)
	if int64(s.slots) != b.slots {
		return value, nil
	}
	s.slot = int(b.slot)
	putInt(value, 0, int64(b.start))
	putInt(value, 2, b.slot)
	for i, rest := 0, b.changed; len(rest.rest) > 0; {
		i += int(rest.varint())
		putInt(s.ring, i, int64(rest.varint()))
	}
	s.fit()
	return value, nil
}

// fit reduces the counts of the oldest slots so that the sum of all fits into int64.
func (s *buckets) fit() {
	room := int64(math.MaxInt64)
	for depth := range s.slots {
		i := s.position(depth)
		count := slotCount(s.ring, i)
		if count > room {
			count = room
			putInt(s.ring, i, count)
		}
		room -= count
	}
}
