package rules

import (
	"container/list"
	"sync"
	"time"
)

// cacheEntries is the maximum number of denials that a [Cache] keeps.
const cacheEntries = 10_000

// Scope identifies the calls to which a denial applies: calls that are equal in all fields.
type Scope struct {
	Policy, Key, Class, Keep, Member string
}

// Cache repeats denials from memory. A denial with a wait is kept for that wait, and at most for its cap. It answers
// calls of the same [Scope] with at least the same cost, unless that is above a limit, so that the call can never pass. At 10,000 entries the one that was not used for longest makes room.
//
// A Cache is only for plain calls ([Request.Plain]): calls with a positive cost, and without PEEK, FORCE, PARTIAL and
// RESERVE. The methods may be called concurrently.
type Cache struct {
	most time.Duration

	mu      sync.Mutex // mu guards the fields below
	entries map[Scope]*list.Element
	recent  *list.List // the denials, of type *denial, the latest used first
}

type denial struct {
	scope     Scope
	decision  Decision
	cost      int64
	at, until time.Time
}

// NewCache returns a cache that keeps denials for the time most or less. If most is 0, it keeps
// none.
func NewCache(most time.Duration) *Cache {
	return &Cache{most: most, entries: map[Scope]*list.Element{}, recent: list.New()}
}

// Put keeps a denial that was received at now. Other decisions, and denials with nothing to wait for, are not kept.
func (c *Cache) Put(s Scope, cost int64, d Decision, now time.Time) {
	if c.most <= 0 || cost <= 0 || d.Allowed() || d.RetryAfter <= 0 {
		return
	}
	e := &denial{s, d, cost, now, now.Add(min(d.RetryAfter, c.most))}
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.entries[s]; ok {
		found.Value = e
		c.recent.MoveToFront(found)
		return
	}
	if c.recent.Len() >= cacheEntries {
		c.remove(c.recent.Back())
	}
	c.entries[s] = c.recent.PushFront(e)
}

// Get returns the denial of a call at now with the rest of its wait; the denial is nil if there is
// none.
func (c *Cache) Get(s Scope, cost int64, now time.Time) (Decision, bool) {
	if c.most <= 0 || cost <= 0 {
		return Decision{}, false
	}
	c.mu.Lock()
	found, ok := c.entries[s]
	if !ok {
		c.mu.Unlock()
		return Decision{}, false
	}
	e := found.Value.(*denial)
	switch {
	case !now.Before(e.until):
		c.remove(found)
		ok = false
	case cost < e.cost || e.decision.above(cost):
		ok = false
	default:
		c.recent.MoveToFront(found)
	}
	c.mu.Unlock()
	if !ok {
		return Decision{}, false
	}
	return e.decision.After(now.Sub(e.at)), true
}

// Forget drops the denial of a scope, since its key is to be asked about again.
func (c *Cache) Forget(s Scope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.entries[s]; ok {
		c.remove(found)
	}
}

// Len returns the number of entries.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recent.Len()
}

func (c *Cache) remove(e *list.Element) {
	delete(c.entries, c.recent.Remove(e).(*denial).scope)
}
