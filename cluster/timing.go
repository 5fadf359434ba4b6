package cluster

import (
	"math/rand/v2"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// timing is all that the store knows of time and chance.
type timing interface {
	// Now is the instant of the clock that all servers share. Nobody asks before there is
	// one: until then the engine answers nothing.
	Now() limit.Instant
	// Elapsed is the time since a start of its own, which no clock that is set can move.
	Elapsed() time.Duration
	// AfterFunc calls f on a goroutine of its own once d has passed. stop prevents that if
	// it has not begun, and reports whether it did.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
	// UpTo is a random duration from 0 to most.
	UpTo(most time.Duration) time.Duration
	// Number is a random number.
	Number() uint32
}

// realTime is the machine's time and chance, with instants of the clock that is shared.
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
