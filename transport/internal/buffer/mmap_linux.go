package buffer

import "golang.org/x/sys/unix"

// mapMemory returns memory of n bytes outside of Go's heap, which takes no page before it is written to;
// nil if the system has none.
func mapMemory(n int) []byte {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	_ = unix.Madvise(b, unix.MADV_NOHUGEPAGE) // a kernel without huge pages refuses
	return b
}

// remapMemory makes memory of mapMemory n bytes long, without copying; nil if the system cannot, and b
// stays as it is.
func remapMemory(b []byte, n int) []byte {
	longer, err := unix.Mremap(b, n, unix.MREMAP_MAYMOVE)
	if err != nil {
		return nil
	}
	return longer
}

// unmapMemory gives memory of mapMemory back.
func unmapMemory(b []byte) {
	_ = unix.Munmap(b) // nothing could be done about it
}
