package epoll

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls in this file bypass Go's scheduler: on a non-blocking socket they return at once, and
// entering the scheduler for each would cost a fifth of a small command. A call that may block must
// not be made this way.

// recv reads into p, which must not be empty. At the end of input n and errno are 0. If there is
// nothing to read now, errno is EAGAIN. After EINTR recv tries again.
func recv(fd int32, p []byte) (n int, errno unix.Errno) {
	for {
		r, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd),
			uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
		if e == 0 {
			return int(r), 0
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}

// send writes as much of p as possible, without SIGPIPE if the peer is gone. If the kernel takes
// nothing now, errno is EAGAIN. After EINTR send tries again.
func send(fd int32, p []byte) (n int, errno unix.Errno) {
	for {
		r, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd),
			uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_NOSIGNAL, 0, 0)
		if e == 0 {
			return int(r), 0
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}

// maxParts is the maximum number of pieces of one call.
const maxParts = 64

// sendParts does what send does, for up to maxParts pieces, none of which may be empty. iovecs is
// scratch memory.
func sendParts(fd int32, parts [][]byte, iovecs *[maxParts]unix.Iovec) (n int, errno unix.Errno) {
	for i, p := range parts {
		iovecs[i].Base = unsafe.SliceData(p)
		iovecs[i].SetLen(len(p))
	}
	defer clear(iovecs[:len(parts)])
	msg := unix.Msghdr{Iov: &iovecs[0]}
	msg.SetIovlen(len(parts))
	for {
		r, _, e := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&msg)), unix.MSG_NOSIGNAL)
		if e == 0 {
			return int(r), 0
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}

// poll returns pending events without waiting, and 0 after an error.
func poll(ep int, events []unix.EpollEvent) int {
	r, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(ep),
		uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	if e != 0 {
		return 0
	}
	return int(r)
}

// writeEventfd writes to an eventfd, which wakes its reader.
func writeEventfd(fd int) {
	one := uint64(1)
	// The write fails only if the counter is near 2^64, and then the loop has an unread event
	// anyway.
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&one)), 8)
}
