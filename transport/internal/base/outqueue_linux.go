package base

import "golang.org/x/sys/unix"

// Unsent returns how many bytes the kernel still holds for the peer of the socket fd, or -1 if that
// is not known.
func Unsent(fd int) int {
	n, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
	if err != nil {
		return -1
	}
	return n
}
