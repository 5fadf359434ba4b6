package remote

import (
	"math/rand/v2"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// timing provides time and random numbers to the store. Any goroutine may use it.
type timing interface {
	// Now returns the present instant of the clock that all servers share, or 0 before that clock
	// is known.
	Now() limit.Instant
	// Elapsed returns the time since an arbitrary start, by a monotonic clock.
	Elapsed() time.Duration
	// AfterFunc calls f on its own goroutine after d. stop prevents that if f has not begun, and
	// reports whether it has prevented it.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
	// UpTo returns a random duration from 0 to most, both inclusive.
	UpTo(most time.Duration) time.Duration
	// Number returns a random number of 32 bits.
	Number() uint32
}

// realTime is the timing of a real server. clock returns the instants of the shared clock.
type realTime struct {
	clock func() limit.Instant
	start time.Time
}

func newRealTime(clock func() limit.Instant) realTime {
	return realTime{clock: clock, start: time.Now()} //nolint:forbidigo // Elapsed is measured from here, and decides nothing
}

func (t realTime) Now() limit.Instant { return t.clock() }

func (t realTime) Elapsed() time.Duration {
	return time.Since(t.start) //nolint:forbidigo // how long something took, not when it was
}

func (realTime) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop
}

func (realTime) UpTo(most time.Duration) time.Duration {
	return time.Duration(rand.Int64N(int64(most) + 1))
}

func (realTime) Number() uint32 { return rand.Uint32() }
