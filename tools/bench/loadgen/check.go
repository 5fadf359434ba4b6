package loadgen

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Check is the result of comparing what one limit granted with its theoretical bounds: the most
// that it may grant, and the least that it must have granted to explain its refusals.
type Check struct {
	// Limit is the name of the limit, and Command a command that calls it.
	Limit   string `json:"limit"`
	Command string `json:"command"`
	// Skipped says why nothing was checked; "" if the limit was checked.
	Skipped string `json:"skipped,omitempty"`
	// Bound is the maximum number of units that a key may be granted within Span, or by one call if
	// no key was used twice.
	Bound int64         `json:"bound"`
	Span  time.Duration `json:"span_ns"`
	// Keys is the number of keys compared with the bound, 0 if no key was used twice. Most is the
	// largest number of units that one key was granted. Violations is the number of keys that were
	// granted more than the bound.
	Keys       int   `json:"keys"`
	Most       int64 `json:"most_granted"`
	Violations int   `json:"violations"`
	// Worst are the keys that exceed the bound by most, at most ten.
	Worst []Excess `json:"worst,omitempty"`
	// Pressed is the number of keys whose refusals prove that units were granted to them. Short is
	// the number of these keys that were granted fewer units than that, and Leanest are those that
	// lack most, at most ten. Unserved is the number of keys that were refused and never granted
	// anything, although the run took more than twice the time that the limit needs to recover:
	// this limit may have refused them, or a limit of an earlier run.
	Pressed  int         `json:"pressed_keys"`
	Short    int         `json:"short_keys"`
	Leanest  []Shortfall `json:"leanest,omitempty"`
	Unserved int         `json:"unserved_keys"`
}

// Violated reports whether the limit granted too much or too little.
func (c Check) Violated() bool { return c.Violations > 0 || c.Short > 0 }

// Excess is one key that was granted more than its bound.
type Excess struct {
	Key     uint64 `json:"key"`
	Granted int64  `json:"granted"`
}

// Shortfall is one key that was granted less than its refusals need.
type Shortfall struct {
	Key     uint64 `json:"key"`
	Granted int64  `json:"granted"`
	Owed    int64  `json:"owed"`
}

// String returns the check on one line.
func (c Check) String() string {
	switch {
	case c.Skipped != "":
		return fmt.Sprintf("%s: not checked: %s", c.Limit, c.Skipped)
	case c.Violations > 0 && c.Keys == 0:
		return fmt.Sprintf("%s: VIOLATED: a call was granted %d at once, at most %d may pass", c.Limit, c.Most, c.Bound)
	case c.Violations > 0:
		return fmt.Sprintf("%s: VIOLATED by %d of %d keys: key %d was granted %d in %v, at most %d may pass",
			c.Limit, c.Violations, c.Keys, c.Worst[0].Key, c.Worst[0].Granted, c.Span.Round(time.Millisecond), c.Bound)
	case c.Short > 0:
		return fmt.Sprintf("%s: VIOLATED by %d of %d keys: key %d was granted %d in %v, its refusals need %d",
			c.Limit, c.Short, c.Pressed, c.Leanest[0].Key, c.Leanest[0].Granted, c.Span.Round(time.Millisecond), c.Leanest[0].Owed)
	case c.Keys == 0:
		return fmt.Sprintf("%s: held by every call on a key of its own: at most %d granted, bound %d", c.Limit, c.Most, c.Bound)
	}
	text := fmt.Sprintf("%s: held by %d keys: at most %d granted in %v, bound %d", c.Limit, c.Keys, c.Most, c.Span.Round(time.Millisecond), c.Bound)
	if c.Pressed > 0 {
		text += fmt.Sprintf("; by %d also the least that refusals need", c.Pressed)
	}
	if c.Unserved > 0 {
		text += fmt.Sprintf("; %d were refused all the time", c.Unserved)
	}
	return text
}

// check compares the ledger with the bounds of a span that contains all requests of the run.
// complete says that every request was answered, too. Otherwise some grants are unknown, so the
// least that must have been granted cannot be checked.
func (l *ledger) check(span time.Duration, complete bool) Check {
	c := Check{Limit: l.limits[0].Name, Command: l.text, Skipped: l.skipped, Span: span}
	if c.Skipped != "" {
		return c
	}
	c.Bound = l.bound(time.Duration(stretched(span)))
	if l.single {
		// A key that is used once is granted units at one instant: the span is 0.
		c.Bound = l.bound(0)
		c.Most = l.largest.Load()
		if c.Most > c.Bound {
			c.Violations, c.Worst = 1, []Excess{{Granted: c.Most}}
		}
		return c
	}
	c.Keys = len(l.granted)
	for i := range l.granted {
		units := l.granted[i].Load()
		c.Most = max(c.Most, units)
		if units > c.Bound {
			c.Violations++
			c.Worst = worst(c.Worst, Excess{Key: l.first + uint64(i), Granted: units})
		}
	}
	if complete {
		l.checkClaims(&c)
	}
	return c
}

// checkClaims compares the units granted to each key with those that its refusals require.
func (l *ledger) checkClaims(c *Check) {
	for i := range l.claims {
		owed, units := l.claims[i].owed.Load(), l.granted[i].Load()
		if owed > 0 {
			c.Pressed++
		}
		if units < owed {
			c.Short++
			c.Leanest = leanest(c.Leanest, Shortfall{Key: l.first + uint64(i), Granted: units, Owed: owed})
		}
		if l.claims[i].since.Load() == neverGranted && int64(c.Span) > 2*stretched(l.limits[0].spell) {
			c.Unserved++
		}
	}
}

// leanest returns all with s added, cut to the ten keys that lack most, in descending order.
func leanest(all []Shortfall, s Shortfall) []Shortfall {
	all = append(all, s)
	slices.SortStableFunc(all, func(a, b Shortfall) int { return cmp.Compare(b.Owed-b.Granted, a.Owed-a.Granted) })
	return all[:min(len(all), 10)]
}

// worst returns all with e added, cut to the ten keys that were granted most, in descending order.
func worst(all []Excess, e Excess) []Excess {
	all = append(all, e)
	slices.SortStableFunc(all, func(a, b Excess) int { return cmp.Compare(b.Granted, a.Granted) })
	return all[:min(len(all), 10)]
}
