package persistence

import "golang.org/x/sys/unix"

// moment sleeps for some 60 microseconds, which is the least that Linux does. Timers
// of Go's would take a millisecond in a process that is otherwise idle.
func moment() {
	t := unix.Timespec{Nsec: 1000}
	_ = unix.Nanosleep(&t, nil) // a signal only makes it shorter
}
