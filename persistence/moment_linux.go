package persistence

import (
	"syscall"
	"unsafe"
)

// moment sleeps for some 60 microseconds, which is the least that Linux does. Timers
// of Go's would take a millisecond in a process that is otherwise idle, and telling
// its scheduler of so short a sleep costs more than the processor that lies idle.
func moment() {
	t := syscall.Timespec{Nsec: 1000}
	_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0) // a signal only makes it shorter
}
