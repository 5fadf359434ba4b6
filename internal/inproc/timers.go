package inproc

import (
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/server"
)

// Timers is a clock for a server in a bubble. It counts the timers that have not fired.
type Timers struct {
	*clock.System
	waiting atomic.Int64
}

// StartTimed does the same as [World.Start] for a server whose timers the returned clock counts.
func (w *World) StartTimed(options ...string) (*Node, *Timers) {
	w.t.Helper()
	return w.StartTimedWith(func(*server.Options) {}, options...)
}

// StartTimedWith does the same as [World.StartWith] for a server whose timers the returned clock
// counts.
func (w *World) StartTimedWith(setup func(*server.Options), options ...string) (*Node, *Timers) {
	w.t.Helper()
	now := func() int64 { return time.Now().UnixNano() }
	c := &Timers{System: clock.NewSystem(clock.Options{}.WithSources(now, now, now))}
	return w.StartWith(func(o *server.Options) {
		o.Clock = c
		setup(o)
	}, options...), c
}

// Timers returns the number of timers that have neither fired nor been stopped.
func (c *Timers) Timers() int { return int(c.waiting.Load()) }

// AfterFunc makes the embedded clock call f after d, and counts the timer.
func (c *Timers) AfterFunc(d time.Duration, f func()) clock.Timer {
	c.waiting.Add(1)
	return &counted{c, c.System.AfterFunc(d, func() {
		c.waiting.Add(-1)
		f()
	})}
}

// counted is a timer that Timers counts.
type counted struct {
	timers *Timers
	clock.Timer
}

func (t *counted) Stop() bool {
	stopped := t.Timer.Stop()
	if stopped {
		t.timers.waiting.Add(-1)
	}
	return stopped
}
