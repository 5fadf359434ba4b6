package storetest

import (
	"fmt"
	"testing"
	"time"
)

// Patience is how long Await waits: far longer than anything takes that succeeds. A sentinel whose
// machine stood still for two seconds does nothing for half a minute (TILT).
const Patience = 2 * time.Minute

// Await calls f until it returns nil, and fails the test if it does not in time. The test
// goes on as soon as f is content; how long it sleeps in between decides nothing.
func Await(t testing.TB, what string, f func() error) {
	t.Helper()
	if err := await(f, nil); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// await is Await for whoever reports the error. It gives up early when ended is closed.
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
