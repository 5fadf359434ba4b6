package yield

import "syscall"

// Thread yields the processor to another thread that waits for it, and returns at once if there is
// none.
func Thread() {
	_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) // it cannot fail
}
