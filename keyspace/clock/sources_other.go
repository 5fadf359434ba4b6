//go:build !linux

package clock

import "time"

// systemSources has no boot-time clock on this system: the time for which the machine is suspended
// does not count.
func systemSources() sources {
	begun := time.Now()
	mono := func() int64 { return int64(time.Since(begun)) }
	return sources{
		wall: func() int64 { return time.Now().UnixNano() },
		mono: mono,
		boot: mono,
	}
}
