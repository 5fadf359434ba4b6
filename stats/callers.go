package stats

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// MaxCallers is the maximum number of users whose commands are counted by name.
const MaxCallers = 50

// Callers counts commands by user: the commands of the first [MaxCallers] users by name, and the
// commands of all others together. Any goroutine may use it.
type Callers struct {
	mu     sync.Mutex
	byName map[string]*atomic.Int64 // the counter of each user; guarded by mu
	others atomic.Int64
}

// Of returns the counter of the user called name. Once there are MaxCallers counters, it returns
// the common counter of all other users for a new name.
func (c *Callers) Of(name string) *atomic.Int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.byName[name]; n != nil {
		return n
	}
	if len(c.byName) >= MaxCallers {
		return &c.others
	}
	if c.byName == nil {
		c.byName = make(map[string]*atomic.Int64)
	}
	n := new(atomic.Int64)
	c.byName[name] = n
	return n
}

// Each calls f for each user that is counted by name, in order of the names, and then with
// [OtherGroups] as the name for all other users, if they have called commands.
func (c *Callers) Each(f func(name string, calls int64)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(c.byName)) {
		f(name, c.byName[name].Load())
	}
	if n := c.others.Load(); n > 0 {
		f(OtherGroups, n)
	}
}
