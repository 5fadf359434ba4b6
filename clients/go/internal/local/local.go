// Package local decides limits in the process of the caller, as the server decides them.
//
// It has token buckets of mode GREEDY, windows of modes FIXED and COUNTER, CL and CC. Other clauses become one of
// these by rules.Clause.Local. A [Table] has the states of all keys.
package local

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cellserver/cellserver/clients/go/internal/rules"
)

// maxKeys is the maximum number of keys that have states of their own.
const maxKeys = 100_000

// sweepEvery is the minimum time in nanoseconds between two searches for keys that are unused
// again.
const sweepEvery = int64(time.Second)

// Table decides calls of many keys under the same clauses. It keeps 100,000 keys. When it is full and no key is unused,
// all new keys share one state, since making room would give a client with many keys new allowances. The methods may be called
// concurrently.
type Table struct {
	clauses []rules.Clause

	mu     sync.Mutex // mu guards the fields below
	keys   map[string][]state
	shared []state
	swept  int64
}

// New returns a table for clauses as they are: see [rules.Clause.Share]. Nothing is in use.
func New(clauses []rules.Clause) *Table {
	t := &Table{clauses: make([]rules.Clause, len(clauses))}
	for i := range clauses {
		t.clauses[i] = clauses[i].Local()
	}
	t.Reset()
	return t
}

// Reset removes the states of all keys.
func (t *Table) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keys, t.shared, t.swept = map[string][]state{}, nil, 0
}

// Len returns the number of keys with states of their own.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.keys)
}

// Decide decides a call at now. All clauses are charged or none. If peek is set, none is.
func (t *Table) Decide(now time.Time, key string, cost int64, member string, peek bool) rules.Decision {
	at := now.UnixNano()
	t.mu.Lock()
	defer t.mu.Unlock()
	states := t.find(key, at)
	d := rules.Decision{Clauses: make([]rules.Numbers, len(t.clauses))}
	denied := false
	for i := range t.clauses {
		d.Clauses[i] = states[i].look(&t.clauses[i], at, t.clauses[i].Units(cost), member)
		denied = denied || d.Clauses[i].Refused > 0
	}
	if !denied && !peek {
		for i := range t.clauses {
			d.Clauses[i] = states[i].charge(&t.clauses[i], at, t.clauses[i].Units(cost), member)
		}
	}
	d.Numbers = combined(d.Clauses)
	return d
}

// Charge takes the cost of a call at now from all clauses, without asking whether it fits.
func (t *Table) Charge(now time.Time, key string, cost int64, member string) {
	at := now.UnixNano()
	t.mu.Lock()
	defer t.mu.Unlock()
	states := t.find(key, at)
	for i := range t.clauses {
		states[i].charge(&t.clauses[i], at, t.clauses[i].Units(cost), member)
	}
}

// Clone returns a table that is as t is now.
func (t *Table) Clone() *Table {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &Table{clauses: t.clauses, keys: make(map[string][]state, len(t.keys)), shared: cloneStates(t.shared), swept: t.swept}
	for key, states := range t.keys {
		c.keys[key] = cloneStates(states)
	}
	return c
}

func cloneStates(states []state) []state {
	c := slices.Clone(states)
	for i := range c {
		c[i].places = maps.Clone(c[i].places)
	}
	return c
}

// combined returns the numbers of a call: those of the clauses that deny it, or of all if none does. The reset is that of
// all in any case.
func combined(clauses []rules.Numbers) rules.Numbers {
	var n rules.Numbers
	for i := range clauses {
		n.Refused, n.ResetAfter = max(n.Refused, clauses[i].Refused), max(n.ResetAfter, clauses[i].ResetAfter)
	}
	first, never := true, false
	n.RetryAfter = rules.None
	for i := range clauses {
		c := &clauses[i]
		if c.Refused != n.Refused {
			continue
		}
		if first || c.Remaining < n.Remaining {
			n.Limit, n.Remaining = c.Limit, c.Remaining
		}
		first = false
		never = never || c.RetryAfter == rules.None
		n.RetryAfter = max(n.RetryAfter, c.RetryAfter)
	}
	if never {
		n.RetryAfter = rules.None
	}
	return n
}

// find returns the states of a key.
func (t *Table) find(key string, now int64) []state {
	if s, ok := t.keys[key]; ok {
		return s
	}
	if len(t.keys) >= maxKeys && now-t.swept >= sweepEvery {
		t.sweep(now)
	}
	if len(t.keys) >= maxKeys {
		if t.shared == nil {
			t.shared = make([]state, len(t.clauses))
		}
		return t.shared
	}
	s := make([]state, len(t.clauses))
	t.keys[key] = s
	return s
}

// sweep removes the keys that are unused again.
func (t *Table) sweep(now int64) {
	t.swept = now
	for key, states := range t.keys {
		unused := true
		for i := range states {
			unused = unused && states[i].reset(&t.clauses[i], now) == 0
		}
		if unused {
			delete(t.keys, key)
		}
	}
}
