package replication

import "github.com/cellserver/cellserver/persistence"

// frames finds the offsets at which frames begin, in a stream that arrives in pieces. A full
// resynchronization begins at such an offset, because a replica cannot use a frame without its
// beginning.
type frames struct {
	// begin is the offset of the incomplete frame, or end if no frame is incomplete. end is the
	// end of the stream.
	begin, end uint64
	size, left int // length of the incomplete frame, and number of its missing bytes; 0 until its header is complete
	head       [8]byte
	got        int // number of bytes of head that are filled
}

// whole reports whether the stream ends at the end of a frame.
func (f *frames) whole() bool { return f.begin == f.end }

// add takes p, the next piece of the stream. It returns the length in bytes of the longest frame
// that has bytes in p. A frame counts only if its header is complete.
func (f *frames) add(p []byte) (longest int) {
	f.end += uint64(len(p))
	for len(p) > 0 {
		if f.left == 0 && f.got == 0 && len(p) >= len(f.head) { // p begins with a complete header, as usual
			whole, err := persistence.FrameLength(p)
			if err != nil {
				whole = len(f.head) // a frame with an invalid length is taken for a header alone: see below
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
			// The log never writes an invalid length. Such a header is skipped as a frame without a
			// body, which the replicas refuse.
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
