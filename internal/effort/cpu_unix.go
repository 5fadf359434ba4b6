//go:build unix

package effort

import (
	"syscall"
	"time"
)

// CPU returns the processor time that this process has used. Unlike the elapsed time, it can be
// bounded in a test on a busy or suspended machine.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // impossible, because Getrusage cannot fail for the process itself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
