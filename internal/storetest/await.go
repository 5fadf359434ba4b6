package storetest

import (
	"fmt"
	"testing"
	"time"
)

// Patience bounds the wait of Await: far longer than anything that succeeds. A sentinel whose
// machine was suspended for two seconds does nothing for half a minute (TILT).
const Patience = 2 * time.Minute

// Await calls f until it returns nil, and fails the test if that takes longer than Patience. The
// interval between the calls does not matter.
func Await(t testing.TB, what string, f func() error) {
	t.Helper()
	if err := await(f, nil); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// await is Await for a caller that reports the error. It gives up early when ended is closed.
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
