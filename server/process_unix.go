//go:build unix

package server

import (
	"bytes"
	"errors"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"
)

// residentSet reads the resident set size in bytes from /proc; 0 without one.
func residentSet() int64 {
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

// systemMemory reads the memory of the machine in bytes from /proc; 0 without one.
func systemMemory() int64 {
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

func cpuTime() (sys, user time.Duration) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0
	}
	return time.Duration(u.Stime.Nano()), time.Duration(u.Utime.Nano())
}

// raiseFiles raises the limit of open files towards want, and returns the new limit.
func raiseFiles(want uint64) uint64 {
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

// setBacklog sets how many connections the kernel keeps before they are accepted; Go requests as
// many as the system permits.
func setBacklog(l *net.TCPListener, n int) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var refused error
	err = raw.Control(func(fd uintptr) { refused = syscall.Listen(int(fd), n) })
	return errors.Join(err, refused)
}

// checkListens returns an error for a descriptor that is not a listening socket. A connected or
// datagram socket could be served, and would then fail at every accept.
func checkListens(descriptor int) error {
	on, err := syscall.GetsockoptInt(descriptor, syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN)
	if err != nil {
		return err
	}
	if on == 0 {
		return errors.New("the socket does not listen")
	}
	return nil
}

// withUmask runs f so that only the owner can use the files that f creates.
func withUmask(f func() error) error {
	old := syscall.Umask(0o177)
	defer syscall.Umask(old)
	return f()
}
