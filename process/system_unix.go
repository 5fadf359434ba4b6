//go:build unix

package process

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// ResidentSet returns the resident set size of the process in bytes, or 0 if /proc does not report
// it.
func ResidentSet() int64 {
	content, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(content)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// SystemMemory returns the memory of the machine in bytes, or 0 if /proc does not report it.
func SystemMemory() int64 {
	content, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(content)
	if len(fields) < 2 || string(fields[0]) != "MemTotal:" {
		return 0
	}
	kilobytes, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return kilobytes << 10
}

// CPUTime returns the processor time that the process has used in system mode and in user mode.
// Both are 0 if the operating system does not report them.
func CPUTime() (sys, user time.Duration) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0
	}
	return time.Duration(u.Stime.Nano()), time.Duration(u.Utime.Nano())
}

// RaiseFiles raises the limit of open files to want, or to the highest permitted value if that is
// lower, and returns the limit. It never lowers the limit. If it cannot read the limit, it returns
// want.
func RaiseFiles(want uint64) uint64 {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return want
	}
	if r.Cur >= want {
		return r.Cur
	}
	r.Cur = min(want, r.Max)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		_ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r)
	}
	return r.Cur
}
