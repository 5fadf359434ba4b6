package replication

import "github.com/cellserver/cellserver/persistence"

// frames finds where frames begin in a stream that comes in pieces. A full sync begins at
// the beginning of a frame, for a replica can make nothing of the rest of one.
type frames struct {
	// begin is the offset of the frame of which a part has come, or end if there is none.
	begin, end uint64
	size, left int // of that frame, and of that what is to come, once its head is there
	head       [8]byte
	got        int // bytes of head that are there
}

// whole reports whether no frame is incomplete.
func (f *frames) whole() bool { return f.begin == f.end }

// add takes the next piece, and returns how long the longest frame is that has bytes of it, as
// far as its head has come.
func (f *frames) add(p []byte) (longest int) {
	f.end += uint64(len(p))
	for len(p) > 0 {
		if f.left == 0 && f.got == 0 && len(p) >= len(f.head) { // as nearly always
			whole, err := persistence.FrameLength(p)
			if err != nil {
				whole = len(f.head) // see below
			}
			if whole <= len(p) {
				longest = max(longest, whole)
				p = p[whole:]
				f.begin = f.end - uint64(len(p))
				continue
			}
		}
		if f.left == 0 {
			n := copy(f.head[f.got:], p)
			f.got, p = f.got+n, p[n:]
			if f.got < len(f.head) {
				return longest
			}
			// No log writes a length that cannot be. Such a head is passed over as a frame
			// without a body, and the replicas refuse it.
			if whole, err := persistence.FrameLength(f.head[:]); err == nil {
				f.size, f.left = whole, whole-len(f.head)
			}
		}
		longest = max(longest, f.size)
		n := min(f.left, len(p))
		f.left, p = f.left-n, p[n:]
		if f.left == 0 {
			f.size, f.got = 0, 0
			f.begin = f.end - uint64(len(p))
		}
	}
	return longest
}
