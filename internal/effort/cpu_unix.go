//go:build unix

package effort

import (
	"syscall"
	"time"
)

// CPU returns the processor time that this process has used. A test can bound it on a busy or
// suspended machine, unlike the elapsed time.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // it cannot fail for the process itself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
