package persistence

import (
	"syscall"
	"unsafe"
)

// shortPause sleeps for about 60 microseconds, the shortest sleep of Linux with the default timer
// slack. A timer of Go would take a millisecond in an idle process. The call is a raw system call,
// so Go's scheduler does not hand this P over to another thread. For so short a sleep that would
// cost more than it gains.
func shortPause() {
	t := syscall.Timespec{Nsec: 1000}
	_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0) // a signal only makes the pause shorter
}
