package dense

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// regionSize is the number of bytes that are mapped at a time. Mapped pages take no memory until
// they are touched.
const regionSize = 4 << 20

// mapSource is a source that maps regions of memory and divides them into pieces. A piece that is
// taken back loses its pages but stays mapped. Regions are unmapped only by close.
type mapSource struct{ regions [][]byte }

// NewArena returns an arena that maps its memory outside of Go's heap.
func NewArena() *Arena { return &Arena{source: new(mapSource)} }

// region maps and returns a new region, without huge pages. With huge pages the first touch of a
// key would wait until 2 MB are zeroed, and a small table would take 2 MB.
func (m *mapSource) region() []byte {
	b, err := unix.Mmap(-1, 0, regionSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		panic(fmt.Sprintf("dense: mapping memory: %v", err))
	}
	_ = unix.Madvise(b, unix.MADV_NOHUGEPAGE) // a kernel without huge pages returns an error
	m.regions = append(m.regions, b)
	return b
}

func (m *mapSource) moreSegments() []*segment {
	b := m.region()
	all := make([]*segment, 0, regionSize/pageSize)
	for off := regionSize - pageSize; off >= 0; off -= pageSize {
		all = append(all, (*segment)(unsafe.Pointer(&b[off])))
	}
	return all
}

func (m *mapSource) moreChunks() []*chunk {
	b := m.region()
	all := make([]*chunk, 0, regionSize/chunkSize)
	for off := regionSize - chunkSize; off >= 0; off -= chunkSize {
		all = append(all, (*chunk)(unsafe.Pointer(&b[off])))
	}
	return all
}

func (m *mapSource) discardSegment(s *segment) bool {
	return discard((*[pageSize]byte)(unsafe.Pointer(s))[:])
}

func (m *mapSource) discardChunk(c *chunk) bool { return discard(c[:]) }

// discard returns the pages of b to the system and reports whether that succeeded. The next access
// to b reads zeros. If it fails, b is not used again, because a segment must be zero.
func discard(b []byte) bool { return unix.Madvise(b, unix.MADV_DONTNEED) == nil }

func (m *mapSource) outside() bool { return true }

func (m *mapSource) close() {
	for _, b := range m.regions {
		_ = unix.Munmap(b) // an error cannot be handled here
	}
	m.regions = nil
}
