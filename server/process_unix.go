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

// residentSet returns the resident set size of the process in bytes, or 0 if the system has no
// /proc.
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

// systemMemory returns the memory of the machine in bytes, or 0 if the system has no /proc.
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

// raiseFiles raises the limit of open files to want, or as far as is permitted, and returns the
// resulting limit. It never lowers the limit. If it cannot read the limit, it returns want.
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

// setBacklog sets to n the number of connections that the kernel keeps for l before they are
// accepted. Go itself requests as many as the system permits.
func setBacklog(l *net.TCPListener, n int) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var refused error
	err = raw.Control(func(fd uintptr) { refused = syscall.Listen(int(fd), n) })
	return errors.Join(err, refused)
}

// checkListens returns an error if descriptor is not a listening socket. Without this check a
// connected or datagram socket would be served, and fail at every accept.
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

// withUmask runs f. Files that f creates can be used only by their owner. The umask is that of the
// process, so files that other goroutines create meanwhile are affected, too.
func withUmask(f func() error) error {
	old := syscall.Umask(0o177)
	defer syscall.Umask(old)
	return f()
}
