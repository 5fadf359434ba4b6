package descriptors

import (
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/rls"
)

// MaxSeries is the maximum number of series that a [Tally] has for rules. The rules beyond it share one more series.
const MaxSeries = 1000

// otherSeries is the series of the rules beyond MaxSeries.
var otherSeries = rls.Series{Domain: other, Key1: other}

// Tally counts the hits of the rules in force, by their series. A series keeps its counts when the rules are replaced, as
// long as one of them has it. Any goroutine may call its methods.
type Tally struct {
	book   atomic.Pointer[book]
	mu     sync.Mutex // locked while a book is made
	others series     // the counts of the rules beyond MaxSeries
}

// NewTally returns a Tally without counts.
func NewTally() *Tally { return &Tally{others: series{name: otherSeries}} }

// book has the series of the rules. Only the counts in it change.
type book struct {
	rules *rls.Config
	of    []*series // the series of each rule; with the same index as the rule in rules
	list  []*series // each series once, in the order of the rules; the series of the rules beyond MaxSeries is the last
}

// series has the counts of all rules that share one series.
type series struct {
	name                              rls.Series
	total, over, within, near, shadow atomic.Uint64
}

// add counts the hits of the request of c, which s has answered with the options o. It does nothing if t is nil.
func (t *Tally) add(s *Service, c *Call, o rls.Options) {
	if t == nil || len(c.decisions) == 0 {
		return
	}
	b := t.of(s.Rules)
	c.plan.Hits(o, c.decisions, func(r *rls.Rule, h rls.Hits) {
		at := b.rules.Find(r)
		if at < 0 {
			return // the rules were replaced meanwhile, and the rule does not exist any more
		}
		n := b.of[at]
		count(&n.total, h.Total)
		count(&n.over, h.Over)
		count(&n.within, h.Within)
		count(&n.near, h.Near)
		count(&n.shadow, h.Shadow)
	})
}

// count adds n to a counter, without an access to it for 0.
func count(c *atomic.Uint64, n int64) {
	if n > 0 {
		c.Add(uint64(n))
	}
}

// of returns the book of the rules that inForce returns.
func (t *Tally) of(inForce func() *rls.Config) *book {
	if b := t.book.Load(); b != nil && b.rules == inForce() {
		return b
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	rules, before := inForce(), t.book.Load()
	if before != nil && before.rules == rules {
		return before
	}
	b := t.make(rules, before)
	t.book.Store(b)
	return b
}

// make returns the book of rules with the counts of the book before, which may be nil.
func (t *Tally) make(rules *rls.Config, before *book) *book {
	names, places := make([]rls.Series, rules.Len()), make(map[rls.Series]*series)
	for i, r := range rules.Rules() {
		names[i] = r.Series()
		places[names[i]] = nil
	}
	free := MaxSeries
	if before != nil {
		for _, s := range before.list {
			if _, wanted := places[s.name]; wanted && s != &t.others {
				places[s.name] = s
				free--
			}
		}
	}
	b, listed := &book{rules: rules, of: make([]*series, len(names))}, make(map[*series]bool)
	for i, name := range names {
		s := places[name]
		switch {
		case s != nil:
		case free > 0 && name != otherSeries:
			s = &series{name: name}
			free--
		default:
			s = &t.others
		}
		if places[name], b.of[i] = s, s; !listed[s] && s != &t.others {
			b.list = append(b.list, s)
		}
		listed[s] = true
	}
	if listed[&t.others] {
		b.list = append(b.list, &t.others)
	}
	return b
}

// Each calls f for each series of the rules that inForce returns, with its counts: in the order of the rules, and then the one
// of the rules beyond MaxSeries.
func (t *Tally) Each(inForce func() *rls.Config, f func(name rls.Series, h rls.Hits)) {
	for _, s := range t.of(inForce).list {
		f(s.name, rls.Hits{
			Total: int64(s.total.Load()), Over: int64(s.over.Load()), Within: int64(s.within.Load()),
			Near: int64(s.near.Load()), Shadow: int64(s.shadow.Load()),
		})
	}
}
