package slidingwindow_test

import (
	"testing"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/stretchr/testify/require"
)

// steady are calls whose values keep their size: the window moves on, and about every tenth call is
// refused.
var steady = map[string]slidingwindow.Call{
	"counter":      {Mode: slidingwindow.Counter, Limit: 90, Window: 100 * ms, Quantity: 1},
	"calendar":     {Mode: slidingwindow.Calendar, Limit: 90, Calendar: calendars[2], Quantity: 1},
	"fixed":        {Mode: slidingwindow.Fixed, Limit: 90, Window: 100 * ms, Quantity: 1},
	"log":          {Mode: slidingwindow.Log, Limit: 90, Window: 100 * ms, Quantity: 1},
	"log 90000":    {Mode: slidingwindow.Log, Limit: 90_000, Window: 100_000 * ms, Quantity: 1},
	"buckets 10":   {Mode: slidingwindow.Buckets, Slots: 10, Limit: 90, Window: 100 * ms, Quantity: 1},
	"buckets 1000": {Mode: slidingwindow.Buckets, Slots: 1000, Limit: 90, Window: 100 * ms, Quantity: 1},
}

// stepper decides and applies one call per millisecond, or a hundred calls in a day of a calendar.
type stepper struct {
	now   limit.Instant
	every time.Duration
	call  slidingwindow.Call
	plan  slidingwindow.Plan
	mode  slidingwindow.Mode
	value []byte
}

func (s *stepper) step() {
	s.now = s.now.Add(s.every)
	if slidingwindow.Decide(s.mode, s.value, 0, s.now, &s.call, &s.plan) == nil && s.plan.Action == slidingwindow.Store {
		s.mode, s.value = s.plan.Mode, s.plan.Apply(s.value, nil)
	}
}

// warm makes calls until the value has its final size.
func warm(c slidingwindow.Call) *stepper {
	s := &stepper{now: 1.7e18, every: time.Millisecond, call: c}
	if c.Mode == slidingwindow.Calendar {
		s.every = 24 * time.Hour / 100
	}
	for range 2 * max(c.Window, 1000*ms) / time.Millisecond {
		s.step()
	}
	return s
}

func TestNoAllocations(t *testing.T) {
	for name, c := range steady {
		s := warm(c)
		require.Zero(t, testing.AllocsPerRun(1000, s.step), name)
		s.call.Charge = slidingwindow.Force
		s.call.Quantity = -1
		require.Zero(t, testing.AllocsPerRun(100, s.step), name)
	}
}

func BenchmarkDecideApply(b *testing.B) {
	for name, c := range steady {
		b.Run(name, func(b *testing.B) {
			s := warm(c)
			b.ReportAllocs()
			for b.Loop() {
				s.step()
			}
		})
	}
}
