package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// systemSources returns the clocks of the system. The boot-time clock is read by a system call,
// which costs ten times as much as a reading of Go's monotonic clock. Therefore it is only sampled.
func systemSources() sources {
	begun := time.Now()
	mono := func() int64 { return int64(time.Since(begun)) }
	return sources{
		wall: func() int64 { return time.Now().UnixNano() },
		mono: mono,
		boot: func() int64 {
			var ts unix.Timespec
			if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
				return 0 // a constant time means that no suspension is noticed
			}
			return ts.Nano()
		},
	}
}
