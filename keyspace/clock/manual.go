package clock

import (
	"errors"
	"sync"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// ManualStart is the instant at which the clock of a server with a manual clock stands at first: midnight UTC of
// 1 January 2025, a Wednesday. It is the same at every start, so that tests see the same windows.
const ManualStart = limit.Instant(1_735_689_600 * int64(time.Second))

// ManualEnd is the last instant to which [Manual.Advance] moves a clock: midnight UTC of 1 January 2200.
const ManualEnd = limit.Instant(7_258_118_400 * int64(time.Second))

// ErrManualEnd says that a clock would move beyond [ManualEnd].
var ErrManualEnd = errors.New("a manual clock ends with the year 2199")

// Manual is a clock that moves only when it is told to, for tests of programs that use the server. Any goroutine may
// call its methods.
type Manual struct {
	moving sync.Mutex // locked during Advance, so that concurrent calls add up
	mu     sync.Mutex
	now    limit.Instant
	timers []*manualTimer // the pending timers, in no order: one for each call that waits
	serial int
}

type manualTimer struct {
	clock  *Manual
	at     limit.Instant
	serial int // order of creation; of the timers of one instant, the one with the lowest serial fires first
	f      func()
}

// NewManual returns a clock that stands at start.
func NewManual(start limit.Instant) *Manual { return &Manual{now: start} }

// Now returns the instant to which the clock was set last.
func (c *Manual) Now() limit.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Civil returns i, since civil time does not differ from the clock.
func (c *Manual) Civil(i limit.Instant) limit.Instant { return i }

// Derived returns i. It is the inverse of Civil.
func (c *Manual) Derived(i limit.Instant) limit.Instant { return i }

// Advance moves the clock forward by d, as Set does. After each timer it calls settle, which waits for what the function
// of the timer has started. The error is [ErrManualEnd], and then the clock stands still.
func (c *Manual) Advance(d time.Duration, settle func()) error {
	c.moving.Lock()
	defer c.moving.Unlock()
	now := c.Now()
	if d > ManualEnd.Sub(now) {
		return ErrManualEnd
	}
	c.move(now.Add(d), settle)
	return nil
}

// Set moves the clock to i. Before that it calls the functions of all timers that are due at i, on
// this goroutine and in order, with the clock at the instant of each timer. If i is in the past,
// Set only sets the clock back.
func (c *Manual) Set(i limit.Instant) { c.move(i, func() {}) }

// move moves the clock to i, as Set does, and calls settle after each timer.
func (c *Manual) move(i limit.Instant, settle func()) {
	for t := c.take(i); t != nil; t = c.take(i) {
		t.f()
		settle()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = i
}

// take removes the first timer that is due at i, and moves the clock to its instant. It returns nil
// if no timer is due.
func (c *Manual) take(i limit.Instant) *manualTimer {
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

func (t *manualTimer) before(u *manualTimer) bool {
	return t.at < u.at || t.at == u.at && t.serial < u.serial
}

// AfterFunc makes the clock call f when it has moved forward by d. Unlike other clocks it calls f in the goroutine that
// moves it.
func (c *Manual) AfterFunc(d time.Duration, f func()) Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serial++
	t := &manualTimer{clock: c, at: c.now.Add(max(0, d)), serial: c.serial, f: f}
	c.timers = append(c.timers, t)
	return t
}

// Timers returns the number of timers that have not fired.
func (c *Manual) Timers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

// Stop prevents the call of the timer's function. It returns false if the function was or is being
// called, or if the timer was stopped before.
func (t *manualTimer) Stop() bool {
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
