// Package clocktest provides a clock that moves only when a test moves it.
package clocktest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
)

// Clock is a [clock.Manual] with a civil time of its own, which also follows other clocks. It moves only by Set, Advance
// and Follow. Any goroutine may call its methods.
type Clock struct {
	*clock.Manual
	civil atomic.Int64
	mu    sync.Mutex
	set   chan struct{} // closed when a timer is set; nil if no goroutine waits for that; guarded by mu
}

// New returns a clock that stands at start.
func New(start limit.Instant) *Clock { return &Clock{Manual: clock.NewManual(start)} }

// Civil returns the civil time at the instant i.
func (c *Clock) Civil(i limit.Instant) limit.Instant { return i.Add(time.Duration(c.civil.Load())) }

// Derived returns the instant at which civil time is i. It is the inverse of Civil.
func (c *Clock) Derived(i limit.Instant) limit.Instant { return i.Add(-time.Duration(c.civil.Load())) }

// SetCivil sets the offset by which civil time is ahead of the clock.
func (c *Clock) SetCivil(offset time.Duration) { c.civil.Store(int64(offset)) }

// Advance moves the clock forward by d, as Set does.
func (c *Clock) Advance(d time.Duration) { c.Set(c.Now().Add(d)) }

// Follow moves the clock to at, an instant of a primary's clock. It does not move the clock back.
func (c *Clock) Follow(at limit.Instant) {
	if at > c.Now() {
		c.Set(at)
	}
}

// StopFollowing does nothing, since this clock has no source that it follows.
func (c *Clock) StopFollowing() {}

// ForgetPrimary does nothing, since this clock has learned nothing from a primary.
func (c *Clock) ForgetPrimary() {}

// AfterFunc makes the clock call f when it has moved forward by d.
func (c *Clock) AfterFunc(d time.Duration, f func()) clock.Timer {
	t := c.Manual.AfterFunc(d, f)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.set != nil {
		close(c.set)
		c.set = nil
	}
	return t
}

// AwaitTimers returns when at least n timers are set.
func (c *Clock) AwaitTimers(n int) {
	for {
		c.mu.Lock()
		if c.Timers() >= n {
			c.mu.Unlock()
			return
		}
		if c.set == nil {
			c.set = make(chan struct{})
		}
		set := c.set
		c.mu.Unlock()
		<-set
	}
}
