package storetest

import (
	"fmt"
	"testing"
	"time"
)

// Patience is the maximum time that Await waits, far longer than anything that succeeds takes. A
// sentinel on a machine that was suspended for two seconds does nothing for half a minute (TILT).
const Patience = 2 * time.Minute

// Await calls f every few milliseconds until it returns nil. If that takes longer than Patience, it
// fails the test with what and the last error.
func Await(t testing.TB, what string, f func() error) {
	t.Helper()
	if err := await(f, nil); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// await does what Await does, but returns the error. It gives up when ended is closed.
func await(f func() error, ended <-chan struct{}) error {
	deadline := time.Now().Add(Patience)
	for {
		err := f()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %s: %w", Patience, err)
		}
		select {
		case <-ended:
			return fmt.Errorf("the process has ended: %w", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
