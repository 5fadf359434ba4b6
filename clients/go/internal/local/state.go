package local

import (
	"math"
	"math/bits"
	"time"

	"github.com/cellserver/cellserver/clients/go/internal/rules"
)

// state has the units of one clause that one key has used. The zero value is unused. Instants are nanoseconds since
// 1970.
type state struct {
	// full is the instant at which the bucket is full again.
	full int64
	// start is the beginning of the window in which units were counted last. curr is the number of units in it, and
	// prev the number in the window before it.
	start, curr, prev int64
	// places maps each member to the instant at which its lease ends.
	places map[string]int64
}

// look returns the numbers of the answer to a call that takes nothing.
func (s *state) look(c *rules.Clause, now, cost int64, member string) rules.Numbers {
	most := c.MostUnits()
	switch c.Family {
	case rules.Unlimited:
		return rules.Numbers{Limit: most, Remaining: most, RetryAfter: rules.None}
	case rules.Lease:
		return s.lookLease(c, now, cost, member)
	case rules.Bucket, rules.Cell, rules.Window:
	}
	used := s.used(c, now)
	n := rules.Numbers{
		Limit: most, Remaining: max(0, most-used), RetryAfter: rules.None, ResetAfter: up(s.reset(c, now)),
	}
	if (cost <= 0 || cost <= most && used <= most-cost) && s.fits(c, now, cost) {
		return n
	}
	n.Refused = 1
	if most > 0 && cost <= most {
		n.RetryAfter = up(s.wait(c, now, cost))
	}
	return n
}

// charge takes cost units, which fit, and returns the numbers afterwards.
func (s *state) charge(c *rules.Clause, now, cost int64, member string) rules.Numbers {
	switch c.Family {
	case rules.Lease:
		if cost <= 0 {
			break // a place is taken by units, and given back by CC.RELEASE
		}
		if s.places == nil {
			s.places = map[string]int64{}
		}
		s.places[member] = now + int64(c.Period)
	case rules.Bucket, rules.Cell:
		s.full = now + max(0, s.debt(now)+interval(c)*cost)
	case rules.Window:
		s.roll(c, now)
		if cost >= 0 {
			s.curr += cost
			break
		}
		taken := min(-cost, s.curr)
		s.curr -= taken
		s.prev -= min(-cost-taken, s.prev)
	case rules.Unlimited:
	}
	return s.look(c, now, 0, member)
}

// interval returns the time of one unit of a bucket.
func interval(c *rules.Clause) int64 { return max(1, int64(float64(c.Period)/float64(c.Count))) }

// debt returns the time until a bucket is full.
func (s *state) debt(now int64) int64 { return max(0, s.full-now) }

// fits reports whether a bucket can count cost units more.
func (s *state) fits(c *rules.Clause, now, cost int64) bool {
	if c.Family == rules.Window || cost <= 0 {
		return true
	}
	hi, lo := bits.Mul64(uint64(interval(c)), uint64(cost))
	return hi == 0 && lo < uint64(math.MaxInt64-max(now, s.full))
}

// used returns the units that count at now.
func (s *state) used(c *rules.Clause, now int64) int64 {
	if c.Family != rules.Window {
		return divUp(s.debt(now), interval(c))
	}
	s.roll(c, now)
	return s.curr + s.overlap(c, now)
}

// wait returns the time until a call with this cost passes. The cost is at most the limit.
func (s *state) wait(c *rules.Clause, now, cost int64) int64 {
	room := c.MostUnits() - cost
	if c.Family != rules.Window {
		return s.debt(now) - interval(c)*room
	}
	window, elapsed := int64(c.Period), now-s.start
	switch {
	case fixed(c):
		return window - elapsed
	case s.curr <= room:
		return decayed(window, s.prev, room-s.curr) - elapsed
	}
	return window - elapsed + decayed(window, s.curr, room)
}

// reset returns the time in nanoseconds until no unit is in use.
func (s *state) reset(c *rules.Clause, now int64) int64 {
	switch c.Family {
	case rules.Bucket, rules.Cell:
		return s.debt(now)
	case rules.Lease:
		last := int64(0)
		for _, end := range s.places {
			last = max(last, end-now)
		}
		return last
	case rules.Unlimited:
		return 0
	case rules.Window:
	}
	s.roll(c, now)
	window, elapsed := int64(c.Period), now-s.start
	switch {
	case fixed(c) && s.curr > 0:
		return window - elapsed
	case fixed(c):
		return 0
	case s.curr > 0:
		return window - elapsed + decayed(window, s.curr, 0)
	case s.overlap(c, now) == 0:
		return 0
	}
	return decayed(window, s.prev, 0) - elapsed
}

// fixed reports whether a window has the mode FIXED. Otherwise its mode is COUNTER.
func fixed(c *rules.Clause) bool { return len(c.Options) > 0 && c.Options[0] == "FIXED" }

// roll moves the state to the window that has now.
func (s *state) roll(c *rules.Clause, now int64) {
	window := int64(c.Period)
	start := now - now%window
	switch {
	case start == s.start:
		return
	case start == s.start+window && !fixed(c):
		s.prev = s.curr
	default:
		s.prev = 0
	}
	s.start, s.curr = start, 0
}

// overlap returns how many units of the window before still count: all of them at the start of a window, and none at its end.
func (s *state) overlap(c *rules.Clause, now int64) int64 {
	if s.prev == 0 {
		return 0
	}
	q, _ := mulDiv(s.prev, int64(c.Period)-(now-s.start), int64(c.Period))
	return q
}

// decayed returns the earliest time since the start of a window at which at most room of the n units of the window before
// still count. room is less than n.
func decayed(window, n, room int64) int64 {
	q, rem := mulDiv(room+1, window, n)
	if rem {
		q++
	}
	return window - q + 1
}

// lookLease returns the numbers of a lease without taking a place. A call for no units passes, since it takes no place.
func (s *state) lookLease(c *rules.Clause, now, cost int64, member string) rules.Numbers {
	first, last := int64(math.MaxInt64), int64(0)
	for m, end := range s.places {
		if end <= now {
			delete(s.places, m)
			continue
		}
		first, last = min(first, end-now), max(last, end-now)
	}
	n := rules.Numbers{Limit: c.Limit, Remaining: max(0, c.Limit-int64(len(s.places))), RetryAfter: rules.None, ResetAfter: up(last)}
	if _, own := s.places[member]; own && c.Limit > 0 || n.Remaining > 0 || cost <= 0 {
		return n
	}
	n.Refused = 1
	if c.Limit > 0 {
		n.RetryAfter = up(first)
	}
	return n
}

// up returns a time in nanoseconds, rounded up to a millisecond, as replies have it.
func up(ns int64) time.Duration {
	return time.Duration(divUp(ns, int64(time.Millisecond))) * time.Millisecond
}

func divUp(a, b int64) int64 {
	q := a / b
	if a%b != 0 {
		q++
	}
	return q
}

// mulDiv returns a*b/c, rounded down, and whether there is a remainder. No number is negative, and the result fits.
func mulDiv(a, b, c int64) (q int64, rem bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	quo, r := bits.Div64(hi, lo, uint64(c))
	return int64(quo), r != 0
}
