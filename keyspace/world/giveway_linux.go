package world

import "syscall"

// GiveWay lets another thread that waits for this processor have it, and returns at
// once if there is none. Work that may take long does it between its locks: a thread
// that has just begun its share of time, some milliseconds, is otherwise not
// interrupted for an event loop that has been woken.
func GiveWay() {
	_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) // it cannot fail
}
