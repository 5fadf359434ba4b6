//go:build unix

package chaos_test

import "golang.org/x/sys/unix"

// monotonic returns the nanoseconds of the clock that all programs of a machine share, and which
// cannot be set: redis-py, ioredis and Lettuce programs read the same one.
func monotonic() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // every system has this clock
	}
	return now.Nano()
}
