package loadgen

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// maxLedgerKeys is the maximum number of keys that a ledger counts, beginning with the first. The
// counters take 32 MiB.
const maxLedgerKeys = 1 << 22

// ledger counts the units that were granted to each key during a run, including the warm-up. Commands
// share a ledger if the argument that is their key is the same. If they ask for different limits,
// nothing is checked: see skipped. It is safe for concurrent use.
type ledger struct {
	// limits are the limits of the commands; they may differ in their options.
	limits []*Limit
	// text is the command that reports show for the ledger.
	text string
	// pattern is the argument that is the key. fixed says that all requests have the same key.
	pattern string
	fixed   bool
	first   uint64
	// granted holds the units granted to each key. Index 0 is the key with the number first.
	granted []atomic.Int64
	// single says that no key is used twice. Then only largest counts, the largest grant of one
	// call.
	single  bool
	largest atomic.Int64
	// claims has, for each of the first keys, the units that the key must have been granted. It is
	// empty if refusals prove nothing.
	claims []claim
	// skipped is the reason why nothing can be checked, or "".
	skipped string
}

// newLedgers returns the ledgers of each template, one for each of its charges. shared says that
// other clients use the keys, too. Then only the upper bound can be checked.
func newLedgers(m *Mix, keys KeySpec, shared bool) [][]*ledger {
	byPattern := make(map[string]*ledger)
	ledgers := make([][]*ledger, len(m.templates))
	for i, t := range m.templates {
		for _, c := range t.charges {
			l := byPattern[c.key]
			switch {
			case l == nil:
				l = newLedger(t.text, c, keys)
				byPattern[c.key] = l
			case l.limits[0].Name != c.limit.Name:
				l.skipped = "two limits share its keys"
			}
			l.limits = append(l.limits, c.limit)
			if l.skipped == "" {
				l.skipped = c.limit.unbounded
			}
			ledgers[i] = append(ledgers[i], l)
		}
	}
	for _, t := range m.templates {
		for _, l := range byPattern {
			if t.limit == nil && t.mayChange(l.pattern) {
				l.skipped = t.Name() + " may change its keys"
			}
		}
	}
	for _, l := range byPattern {
		l.open(keys, shared)
	}
	return ledgers
}

func newLedger(text string, c charge, keys KeySpec) *ledger {
	l := &ledger{text: text, pattern: c.key, first: keys.First}
	l.single = strings.Contains(l.pattern, "{seq}") || keys.Kind == KeyFlood && strings.Contains(l.pattern, "{key}")
	l.fixed = !l.single && !strings.Contains(l.pattern, "{key}")
	return l
}

// open allocates the counters of the keys. It allocates claims only if refusals prove something:
// shared, which says that other clients use the keys, is false, and each limit has a spell.
func (l *ledger) open(keys KeySpec, shared bool) {
	if l.skipped != "" || l.single {
		return
	}
	n := min(keys.Count, maxLedgerKeys)
	if l.fixed {
		n = 1
	}
	l.granted = make([]atomic.Int64, n)
	if !shared && !slices.ContainsFunc(l.limits, func(l *Limit) bool { return l.spell <= 0 }) {
		l.claims = make([]claim, min(n, maxClaimKeys))
	}
}

// bound returns the maximum number of units that any of the limits grants within a span.
func (l *ledger) bound(span time.Duration) int64 {
	most := int64(0)
	for _, limit := range l.limits {
		n, _ := limit.Bound(span)
		most = max(most, n)
	}
	return most
}

// readers are the commands that change no limiter.
var readers = []string{
	"DBSIZE", "ECHO", "EXISTS", "GET", "HELLO", "INFO", "OBJECT", "PING", "PTTL",
	"RL.INFO", "SCAN", "STRLEN", "TIME", "TOUCH", "TTL", "TYPE",
}

// mayChange reports whether the command may change a limiter under the pattern. A command on
// another key changes nothing there, but a command without a key may affect every key.
func (t *Template) mayChange(pattern string) bool {
	switch {
	case slices.Contains(readers, t.Name()):
		return false
	case len(t.words) > 1 && strings.Contains(t.words[1], "{key}"):
		return slices.Contains(t.words[1:], pattern)
	}
	return true
}

// settle notes the reply to q, which arrived at now. asked is the number of units that the call
// requested, and granted the number of units that it was granted.
func (l *ledger) settle(q *request, now int64, limit *Limit, asked, granted int64) {
	if granted > 0 {
		l.add(q.key, granted)
	}
	key := q.key
	if l.fixed {
		key = 0
	}
	if key >= uint64(len(l.claims)) {
		return
	}
	if granted > 0 {
		l.claims[key].granted(now)
	}
	if granted < asked {
		l.claims[key].refused(q.at, now, limit.spell, limit.owed(asked))
	}
}

// add notes that units were granted to a key; key 0 is the first.
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
