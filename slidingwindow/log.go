package slidingwindow

import (
	"math"
	"sort"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// log is the state of LOG at one instant. For each distinct instant at which units passed, the
// stored ring has the instant, and the total of all units up to and including that instant. The
// number of units between two entries is the difference of their totals, so totals may wrap around.
// A stored log may have no entries. It is then as if it had never been used.
type log struct {
	window int64
	now    limit.Instant
	// max is the maximum number of entries after a call.
	max int64

	// ring has the stored entries. The oldest is at position head.
	ring []byte
	head int
	// base is the total before the first entry that counts.
	base uint64
	// kept is the number of entries in the ring that count, from head on, with the change by this
	// call. Expired entries do not count, and neither do those that the call replaces or drops.
	kept int
	// last is the entry that the call adds after the kept ones. It is valid only if placed is true.
	last   entry
	placed bool
}

func (s *log) place(c *Call, now limit.Instant, units int64) {
	*s = log{window: int64(c.Window), now: now, max: c.logMax()}
	if units > 0 {
		s.last = entry{at: now, total: uint64(units)}
		s.placed = true
	}
}

// roll sets s.now, and drops the entries that have expired at now. It examines the first entries in
// doubling steps, so that its cost is logarithmic in the number of dropped entries.
func (s *log) roll(now limit.Instant) {
	s.now = now
	bound := 1
	for bound <= s.kept && s.expired(bound-1) {
		bound *= 2
	}
	low := bound / 2
	expired := low + sort.Search(min(bound, s.kept)-low, func(i int) bool { return !s.expired(low + i) })
	s.drop(expired)
}

// drop drops the first n of the kept entries.
func (s *log) drop(n int) {
	if n > 0 {
		s.base = s.at(n - 1).total
		s.head = (s.head + n) & (entries(s.ring) - 1)
		s.kept -= n
	}
}

func (s *log) expired(i int) bool { return int64(s.now.Sub(s.at(i).at)) >= s.window }

// at returns entry i of those that count. The last one may not be in the ring yet.
func (s *log) at(i int) entry {
	if i >= s.kept {
		return s.last
	}
	return logEntry(s.ring, (s.head+i)&(entries(s.ring)-1))
}

// size returns the number of entries that count.
func (s *log) size() int {
	if s.placed {
		return s.kept + 1
	}
	return s.kept
}

func (s *log) used() uint64 {
	if n := s.size(); n > 0 {
		return s.at(n-1).total - s.base
	}
	return 0
}

func (s *log) charged() uint64 { return s.used() }

// reaching returns the index of the first entry for which the units up to and including it are at
// least n. n must be from 1 to the units in use.
func (s *log) reaching(n uint64) int {
	return sort.Search(s.size()-1, func(i int) bool { return s.at(i).total-s.base >= n })
}

func (s *log) expires(i int) time.Duration {
	return time.Duration(limit.SatAdd(int64(s.at(i).at.Sub(s.now)), s.window))
}

func (s *log) retry(most, quantity int64) time.Duration {
	return s.expires(s.reaching(s.used() - uint64(most-quantity)))
}

func (s *log) reset() time.Duration {
	if n := s.size(); n > 0 {
		return s.expires(n - 1)
	}
	return 0
}

// add adds n units at now. Usually the units get a new entry. If the newest entry has the same or a
// later instant, or the log has its maximum number of entries, the newest entry gets the units, and
// the later one of the two instants. add returns false if the count would exceed int64. It must not
// be called after take.
func (s *log) add(n int64) bool {
	used := s.used()
	if used > math.MaxInt64-uint64(n) {
		return false
	}
	at := s.now
	if s.kept > 0 {
		newest := s.at(s.kept - 1).at
		// Entries stay in order even if the clock was set back.
		at = max(at, newest)
		if newest == at || int64(s.kept) >= s.max {
			s.kept--
		}
	}
	s.last = entry{at: at, total: s.base + used + uint64(n)}
	s.placed = true
	return true
}

func (s *log) take(n uint64) {
	used := s.used()
	if n >= used {
		s.kept = 0
		s.placed = false
		return
	}
	rest := used - n
	i := s.reaching(rest)
	s.last = entry{at: s.at(i).at, total: s.base + rest}
	s.kept = i
	s.placed = true
}

// before returns the total before entry i of those that count.
func (s *log) before(i int) uint64 {
	if i == 0 {
		return s.base
	}
	return s.at(i - 1).total
}

// units returns the units of entry i of those that count.
func (s *log) units(i int) uint64 { return s.at(i).total - s.before(i) }

// from returns the number of kept entries that are earlier than at.
func (s *log) from(at limit.Instant) int {
	return sort.Search(s.kept, func(i int) bool { return s.at(i).at >= at })
}

// put replaces entry i of those that count. Its place must be in the ring.
func (s *log) put(i int, e entry) { putEntry(s.ring, (s.head+i)&(entries(s.ring)-1), e) }

// remove removes the entries from, ..., to-1, which may be none, and makes all later totals n units
// less relative to the earlier ones. It moves the earlier or the later entries, whichever are
// fewer.
func (s *log) remove(from, to int, n uint64) {
	gap := to - from
	if from <= s.kept-to {
		for i := from - 1; i >= 0; i-- {
			e := s.at(i)
			s.put(i+gap, entry{at: e.at, total: e.total + n})
		}
		s.base += n
		s.head = (s.head + gap) & (entries(s.ring) - 1)
	} else {
		for i := to; i < s.kept; i++ {
			e := s.at(i)
			s.put(i-gap, entry{at: e.at, total: e.total - n})
		}
	}
	s.kept -= gap
}
