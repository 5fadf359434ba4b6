// Package clocktest provides a clock that moves only when a test moves it.
package clocktest

import (
	"sync"
	"time"

	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
)

// Clock is a clock that implements clock.Clock. It moves only by Set, Advance and Follow. Any
// goroutine may call its methods.
type Clock struct {
	mu     sync.Mutex
	now    limit.Instant
	civil  time.Duration
	timers []*timer // not sorted: tests have few timers
	serial int
	set    chan struct{} // closed when a timer is set; nil if no goroutine waits for that
}

type timer struct {
	clock  *Clock
	at     limit.Instant
	serial int // of the timers of one instant, the lowest serial fires first
	f      func()
}

// New returns a clock that stands at start.
func New(start limit.Instant) *Clock { return &Clock{now: start} }

// Now returns the instant to which the clock was set last.
func (c *Clock) Now() limit.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Civil returns the civil time at the instant i.
func (c *Clock) Civil(i limit.Instant) limit.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return i.Add(c.civil)
}

// Derived returns the instant at which civil time is i. It is the inverse of Civil.
func (c *Clock) Derived(i limit.Instant) limit.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return i.Add(-c.civil)
}

// SetCivil sets the offset by which civil time is ahead of the clock.
func (c *Clock) SetCivil(offset time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.civil = offset
}

// Advance moves the clock forward by d, as Set does.
func (c *Clock) Advance(d time.Duration) { c.Set(c.Now().Add(d)) }

// Set moves the clock to i. Before that it calls the functions of all timers that are due at i, on
// this goroutine and in order, with the clock at the instant of each timer. If i is in the past,
// Set only sets the clock back, so that a test can check that the server ignores that.
func (c *Clock) Set(i limit.Instant) {
	for {
		t := c.take(i)
		if t == nil {
			break
		}
		t.f()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = i
}

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

// take removes the first timer that is due at i, and moves the clock to its instant. It returns nil
// if no timer is due.
func (c *Clock) take(i limit.Instant) *timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := -1
	for k, t := range c.timers {
		if t.at <= i && (first < 0 || t.before(c.timers[first])) {
			first = k
		}
	}
	if first < 0 {
		return nil
	}
	t := c.timers[first]
	c.timers = append(c.timers[:first], c.timers[first+1:]...)
	c.now = max(c.now, t.at)
	return t
}

func (t *timer) before(u *timer) bool {
	return t.at < u.at || t.at == u.at && t.serial < u.serial
}

// AfterFunc makes the clock call f when it has moved forward by d.
func (c *Clock) AfterFunc(d time.Duration, f func()) clock.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serial++
	t := &timer{clock: c, at: c.now.Add(max(0, d)), serial: c.serial, f: f}
	c.timers = append(c.timers, t)
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
		if len(c.timers) >= n {
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

// Timers returns the number of timers that have not fired.
func (c *Clock) Timers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

// Stop prevents the call of the timer's function. It returns false if the function was or is being
// called, or if the timer was stopped before.
func (t *timer) Stop() bool {
	c := t.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.timers {
		if c.timers[k] == t {
			c.timers = append(c.timers[:k], c.timers[k+1:]...)
			return true
		}
	}
	return false
}
