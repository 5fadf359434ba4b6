package persistence

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// scanner reads and checks the records of an increment one after another.
type scanner struct {
	r    io.ReaderAt
	size int64
	f    framer // computes checksums; f.seq is the number of the next record

	off int64 // offset in bytes of the next record
	// buf has some bytes of the file, from the offset at on.
	buf []byte
	at  int64
}

// damage describes the first invalid record of a file, or a failed read of the file.
type damage struct {
	offset int64
	record uint64
	what   string // a text that says what is wrong
	err    error  // the error of a failed read, after which nothing is known about the record; otherwise nil
}

// Error returns a text that says what is wrong.
func (d *damage) Error() string {
	return fmt.Sprintf("record %d at %d: %s", d.record, d.offset, d.what)
}

// scanBuffer is the number of bytes that a scanner reads at a time.
const scanBuffer = 1 << 20

// newScanner returns a scanner for the increment r with that id, whose length is size bytes.
func newScanner(r io.ReaderAt, size int64, id uint64) *scanner {
	return &scanner{r: r, size: size, f: newFramer(id), off: headerSize}
}

// next returns the payload of the next record, including the type byte, and advances. The payload
// is valid until the next call. At the exact end of the file the error is [io.EOF]. If the record
// is invalid or cannot be read, the error is a *damage.
func (s *scanner) next() ([]byte, error) {
	if s.off == s.size {
		return nil, io.EOF
	}
	if s.size-s.off < frameHead+1 {
		return nil, s.damaged("fewer bytes than a record has")
	}
	head, err := s.window(frameHead)
	if err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(head))
	switch {
	case n == 0:
		return nil, s.damaged("a record of length 0")
	case n > maxRecord || n > s.size-s.off-frameHead:
		return nil, s.damaged(fmt.Sprintf("a record of %d bytes reaches beyond the end of the file", n))
	}
	all, err := s.window(frameHead + n)
	if err != nil {
		return nil, err
	}
	payload := all[frameHead:]
	if s.f.checksum(payload) != binary.LittleEndian.Uint32(all[4:]) {
		return nil, s.damaged("the checksum of the record is wrong")
	}
	s.off += frameHead + n
	s.f.seq++
	return payload, nil
}

// damaged returns the error for the next record, which is invalid.
func (s *scanner) damaged(what string) error {
	return &damage{offset: s.off, record: s.f.seq, what: what}
}

// window returns the n bytes of the file from s.off on, which the file must have. They are valid
// until the next call.
func (s *scanner) window(n int64) ([]byte, error) {
	from := s.off - s.at
	if have := int64(len(s.buf)); from < 0 || from+n > have {
		want := min(max(n, scanBuffer), s.size-s.off)
		if int64(cap(s.buf)) < want {
			s.buf = make([]byte, want)
		}
		s.buf, s.at, from = s.buf[:want], s.off, 0
		if got, err := s.r.ReadAt(s.buf, s.off); int64(got) < want {
			s.buf = s.buf[:0]
			return nil, &damage{offset: s.off, record: s.f.seq, what: "reading failed", err: err}
		}
	}
	return s.buf[from : from+n], nil
}

// durableRecordAfter searches the bytes of the increment r after the offset from for a
// durable-offset or end record which says that everything before an offset beyond from is durable.
// The bytes need not be records. It returns that offset, and whether such a record was found. id is
// the id of the file, and size is its length in bytes.
func durableRecordAfter(r io.ReaderAt, size int64, id uint64, from int64) (offset int64, found bool, err error) {
	pattern := binary.LittleEndian.AppendUint64(bytes.Clone(durableMarker[:]), id)
	const overlap = frameHead + durableSize
	buf := make([]byte, min(scanBuffer+overlap, size-from))
	for at := from; at < size; at += scanBuffer {
		n := min(int64(len(buf)), size-at)
		if got, err := r.ReadAt(buf[:n], at); int64(got) < n {
			return 0, false, errors.Join(io.ErrUnexpectedEOF, err)
		}
		for rest, base := buf[:n], 0; ; {
			i := bytes.Index(rest, pattern)
			if i < 0 {
				break
			}
			if o, ok := durableRecordAt(buf[:n], base+i, id); ok && o > from {
				return o, true, nil
			}
			rest, base = rest[i+1:], base+i+1
		}
	}
	return 0, false, nil
}

// durableRecordAt returns the offset in the durable-offset or end record whose marker is at b[i:].
// ok is false if there is no valid record.
func durableRecordAt(b []byte, i int, id uint64) (offset int64, ok bool) {
	from, end := i-1-frameHead, i-1+durableSize
	if from < 0 || end > len(b) {
		return 0, false
	}
	rec := b[from:end]
	f := newFramer(id)
	f.seq = binary.LittleEndian.Uint64(rec[frameHead+25:])
	if binary.LittleEndian.Uint32(rec) != durableSize ||
		binary.LittleEndian.Uint32(rec[4:]) != f.checksum(rec[frameHead:]) {
		return 0, false
	}
	return durableOffset(rec[frameHead:], id)
}
