package dense

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// regionSize is how much is mapped at a time. It takes no memory until it is
// touched.
const regionSize = 4 << 20

// mapSource maps regions and cuts them up. Pieces that come back lose their pages
// but keep their address, so that a region is only unmapped at the end.
type mapSource struct{ regions [][]byte }

// NewArena makes an arena that maps its memory.
func NewArena() *Arena { return &Arena{source: new(mapSource)} }

// region maps memory without huge pages: they would make the first touch of a key
// wait for the zeroing of 2 MB, and a small table pay for all of them.
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

// discard gives the pages back; the next touch finds zeros. A piece whose pages
// could not be given back is not used again, because a segment has to be zero.
func discard(b []byte) bool { return unix.Madvise(b, unix.MADV_DONTNEED) == nil }

func (m *mapSource) outside() bool { return true }

func (m *mapSource) close() {
	for _, b := range m.regions {
		_ = unix.Munmap(b) // nothing could be done about it
	}
	m.regions = nil
}
