//go:build !linux

package clock

import "time"

// systemSources returns the clocks of the system. The boot-time clock is not available on this
// system, so the monotonic clock takes its place: the time for which the machine is suspended does
// not count.
func systemSources() sources {
	begun := time.Now()
	mono := func() int64 { return int64(time.Since(begun)) }
	return sources{
		wall: func() int64 { return time.Now().UnixNano() },
		mono: mono,
		boot: mono,
	}
}
