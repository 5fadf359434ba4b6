package bubble_test

import (
	"sync"
	"testing"
	"time"

	"github.com/cellserver/cellserver/internal/bubble"
)

// TestTimersAtOneInstant crashes the race detector in a second if two processors run the bubble.
func TestTimersAtOneInstant(t *testing.T) {
	for range 10 {
		bubble.Test(t, func(*testing.T) {
			var all sync.WaitGroup
			for range 40 {
				all.Go(fireTimers)
			}
			all.Wait()
		})
	}
}

// fireTimers waits for timers of which many end at the same time.
func fireTimers() {
	for range 100 {
		timer := time.NewTimer(time.Millisecond)
		f := time.AfterFunc(time.Millisecond, func() {})
		select {
		case <-timer.C:
		case <-time.After(time.Millisecond):
		}
		timer.Reset(0)
		select {
		case <-timer.C:
		case <-time.After(time.Millisecond):
		}
		f.Stop()
	}
}
