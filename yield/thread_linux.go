package yield

import "syscall"

// Thread yields the processor to another thread of the system that is ready to run on it. It
// returns at once if there is none.
func Thread() {
	_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) // the call cannot fail
}
