package loadgen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// maxLedgerKeys bounds how many keys a ledger follows, the first ones: 32 MiB.
const maxLedgerKeys = 1 << 22

// slew is how much faster than ours a server's clock may run: the most by which
// NTP corrects a clock, 500 ppm.
const slew = 2000

// ledger adds up what one limit granted to each key in the course of a run,
// warm-up included. Several commands share a ledger if they ask for the same limit
// on the same keys. It may be used by several goroutines.
type ledger struct {
	limit *Limit
	// text is the command that is shown for it.
	text string
	// pattern is the word that holds the key; fixed tells that it is always the
	// same one.
	pattern string
	fixed   bool
	first   uint64
	// granted holds the units of each key, counted from first.
	granted []atomic.Int64
	// single tells that no key is used twice, so that largest, the largest single
	// grant, is all that matters.
	single  bool
	largest atomic.Int64
	// skipped says why nothing can be checked.
	skipped string
}

// newLedgers returns the ledger of each template, nil for those without a limit.
func newLedgers(m *Mix, keys KeySpec) []*ledger {
	byPattern := make(map[string]*ledger)
	ledgers := make([]*ledger, len(m.templates))
	for i, t := range m.templates {
		if t.limit == nil {
			continue
		}
		l := byPattern[t.keyPattern()]
		if l == nil {
			l = newLedger(t, keys)
			byPattern[l.pattern] = l
		} else if l.limit.Name != t.limit.Name {
			l.skipped = "two limits share its keys"
		}
		if l.skipped == "" {
			l.skipped = t.limit.unbounded
		}
		ledgers[i] = l
	}
	for _, t := range m.templates {
		for _, l := range byPattern {
			if t.limit == nil && t.mayChange(l.pattern) {
				l.skipped = t.Name() + " may change its keys"
			}
		}
	}
	for _, l := range byPattern {
		if l.skipped == "" && !l.single {
			n := min(keys.Count, maxLedgerKeys)
			if l.fixed {
				n = 1
			}
			l.granted = make([]atomic.Int64, n)
		}
	}
	return ledgers
}

func newLedger(t *Template, keys KeySpec) *ledger {
	l := &ledger{limit: t.limit, text: t.text, pattern: t.keyPattern(), first: keys.First}
	l.single = strings.Contains(l.pattern, "{seq}") || keys.Kind == KeyFlood && strings.Contains(l.pattern, "{key}")
	l.fixed = !l.single && !strings.Contains(l.pattern, "{key}")
	return l
}

// keyPattern returns the key of a limiter's call as the template has it.
func (t *Template) keyPattern() string { return t.words[1] }

// readers are the commands that leave every limiter as it is.
var readers = []string{
	"DBSIZE", "ECHO", "EXISTS", "GET", "HELLO", "INFO", "OBJECT", "PING", "PTTL",
	"RL.INFO", "SCAN", "STRLEN", "TIME", "TOUCH", "TTL", "TYPE",
}

// mayChange reports whether the command may change a limiter under the pattern. A
// command on one other key does not, but what has no key may concern them all.
func (t *Template) mayChange(pattern string) bool {
	switch {
	case slices.Contains(readers, t.Name()):
		return false
	case len(t.words) > 1 && strings.Contains(t.words[1], "{key}"):
		return slices.Contains(t.words[1:], pattern)
	}
	return true
}

// add notes that units were granted to a key, counted from the first one.
func (l *ledger) add(key uint64, units int64) {
	switch {
	case l.skipped != "":
	case l.single:
		for {
			seen := l.largest.Load()
			if units <= seen || l.largest.CompareAndSwap(seen, units) {
				return
			}
		}
	case l.fixed:
		l.granted[0].Add(units)
	case key < uint64(len(l.granted)):
		l.granted[key].Add(units)
	}
}

// Check is what became of holding one limit against its theoretical bound.
type Check struct {
	// Limit is the limit, Command a command that asks for it.
	Limit   string `json:"limit"`
	Command string `json:"command"`
	// Skipped says why nothing was checked, and is empty if it was.
	Skipped string `json:"skipped,omitempty"`
	// Bound is the most that a key may have been granted within Span.
	Bound int64         `json:"bound"`
	Span  time.Duration `json:"span_ns"`
	// Keys is how many keys were held against it, 0 if no key was used twice; Most what the key had that was
	// granted most, and Violations how many keys had more than the bound.
	Keys       int   `json:"keys"`
	Most       int64 `json:"most_granted"`
	Violations int   `json:"violations"`
	// Worst are the keys that had most of all those above the bound.
	Worst []Excess `json:"worst,omitempty"`
}

// Excess is one key that was granted more than its bound.
type Excess struct {
	Key     uint64 `json:"key"`
	Granted int64  `json:"granted"`
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
	}
	if c.Keys == 0 {
		return fmt.Sprintf("%s: held by every call on a key of its own: at most %d granted, bound %d", c.Limit, c.Most, c.Bound)
	}
	return fmt.Sprintf("%s: held by %d keys: at most %d granted in %v, bound %d",
		c.Limit, c.Keys, c.Most, c.Span.Round(time.Millisecond), c.Bound)
}

// check holds the ledger against the bound of a span that contains everything that
// was sent and answered.
func (l *ledger) check(span time.Duration) Check {
	c := Check{Limit: l.limit.Name, Command: l.text, Skipped: l.skipped, Span: span}
	if c.Skipped != "" {
		return c
	}
	c.Bound, _ = l.limit.Bound(span + span/slew)
	if l.single {
		// A key used once is a span of no length.
		c.Bound, _ = l.limit.Bound(0)
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
	return c
}

// worst keeps the ten largest.
func worst(all []Excess, e Excess) []Excess {
	all = append(all, e)
	slices.SortStableFunc(all, func(a, b Excess) int { return cmp.Compare(b.Granted, a.Granted) })
	return all[:min(len(all), 10)]
}
