// Package clocktest provides a clock that moves only when a test moves it.
package clocktest

import (
	"sync"
	"time"

	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
)

// Clock implements clock.Clock and stands still between calls of Set and Advance. Any goroutine
// may call its methods.
type Clock struct {
	mu     sync.Mutex
	now    limit.Instant
	civil  time.Duration
	timers []*timer // not sorted: tests have few timers
	serial int
	set    chan struct{} // closed when a timer is set, if something waits for that
}

type timer struct {
	clock  *Clock
	at     limit.Instant
	serial int // earlier timers of the same instant fire first
	f      func()
}

// New returns a clock that stands at start.
func New(start limit.Instant) *Clock { return &Clock{now: start} }

// Now returns the instant that the clock was last set to.
func (c *Clock) Now() limit.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Civil converts an instant to civil time.
func (c *Clock) Civil(i limit.Instant) limit.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return i.Add(c.civil)
}

// Derived is the inverse of Civil.
func (c *Clock) Derived(i limit.Instant) limit.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return i.Add(-c.civil)
}

// SetCivil sets by how much civil time is ahead.
func (c *Clock) SetCivil(offset time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.civil = offset
}

// Advance moves the clock by d.
func (c *Clock) Advance(d time.Duration) { c.Set(c.Now().Add(d)) }

// Set moves the clock to i. It first calls, on this goroutine, the functions of all timers that are
// due by then, in order, each with the clock at the timer's instant. If i is in the past, it only
// sets the clock back, so that a test can check that the server ignores that.
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

// Follow moves the clock to the instant of a primary's clock, but not back.
func (c *Clock) Follow(at limit.Instant) {
	if at > c.Now() {
		c.Set(at)
	}
}

// StopFollowing does nothing: this clock needs no source.
func (c *Clock) StopFollowing() {}

// ForgetPrimary does nothing: this clock has learned nothing.
func (c *Clock) ForgetPrimary() {}

// take removes the first timer that is due at i and moves the clock to it.
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

// AfterFunc calls f when the clock has moved by d.
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

// AwaitTimers returns when at least n timers are waiting.
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

// Timers returns the number of waiting timers.
func (c *Clock) Timers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

// Stop prevents the call of the timer's function, and reports whether it did.
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
