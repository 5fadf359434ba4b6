//go:build unix

package effort

import (
	"syscall"
	"time"
)

// CPU is the processor time that this process has taken. A bound on it holds on a machine that is
// busy or stood still, as a bound on the time of day would not.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // it does not fail for the process itself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
