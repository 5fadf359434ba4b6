package dense

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// regionSize is the number of bytes that are mapped at a time. They take no memory until they are
// touched.
const regionSize = 4 << 20

// mapSource maps regions and divides them. A piece that is freed loses its pages but keeps its
// address, so that a region is only unmapped at the end.
type mapSource struct{ regions [][]byte }

// NewArena returns an arena that maps its memory.
func NewArena() *Arena { return &Arena{source: new(mapSource)} }

// region maps memory without huge pages. With those the first touch of a key would wait until 2 MB
// are zeroed, and a small table would take all of them.
func (m *mapSource) region() []byte {
	b, err := unix.Mmap(-1, 0, regionSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		panic(fmt.Sprintf("dense: mapping memory: %v", err))
	}
	_ = unix.Madvise(b, unix.MADV_NOHUGEPAGE) // a kernel without huge pages refuses
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

// discard returns the pages to the system; the next access reads zeros. A piece whose pages could
// not be returned is not used again, because a segment must be zero.
func discard(b []byte) bool { return unix.Madvise(b, unix.MADV_DONTNEED) == nil }

func (m *mapSource) outside() bool { return true }

func (m *mapSource) close() {
	for _, b := range m.regions {
		_ = unix.Munmap(b) // there is no way to handle an error here
	}
	m.regions = nil
}
