//go:build !linux

package persistence

import "time"

// shortPause sleeps for about the shortest time that the system supports.
func shortPause() { time.Sleep(50 * time.Microsecond) }
