package persistence

import (
	"syscall"
	"unsafe"
)

// shortPause sleeps for about 60 microseconds, which is the shortest sleep of Linux. A timer of Go
// would take a millisecond in an idle process. The call is a raw system call: letting Go's
// scheduler know about so short a sleep would cost more than the idle P.
func shortPause() {
	t := syscall.Timespec{Nsec: 1000}
	_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0) // a signal only makes the sleep shorter
}
