//go:build !linux

package persistence

import "time"

// moment sleeps for about as long as the system can at least.
func moment() { time.Sleep(50 * time.Microsecond) }
