package buffer

import "golang.org/x/sys/unix"

// mapMemory maps n bytes outside of Go's heap. Pages are allocated when they are written to. It
// returns nil on failure.
func mapMemory(n int) []byte {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	_ = unix.Madvise(b, unix.MADV_NOHUGEPAGE) // fails on a kernel without huge pages
	return b
}

// remapMemory changes the length of b, which mapMemory has returned, to n bytes without copying. On
// failure it returns nil, and b stays as it is.
func remapMemory(b []byte, n int) []byte {
	longer, err := unix.Mremap(b, n, unix.MREMAP_MAYMOVE)
	if err != nil {
		return nil
	}
	return longer
}

func unmapMemory(b []byte) {
	_ = unix.Munmap(b) // an error cannot be handled here
}
