package persistence

import (
	"syscall"
	"unsafe"
)

// shortPause sleeps for about 60 microseconds, the shortest sleep of Linux. A timer of Go would
// take a millisecond in an idle process, and telling Go's scheduler of so short a sleep costs more
// than the idle processor.
func shortPause() {
	t := syscall.Timespec{Nsec: 1000}
	_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0) // a signal only makes it shorter
}
