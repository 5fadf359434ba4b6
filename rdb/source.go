package rdb

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"slices"
)

// piece is the maximum number of bytes of memory that are reserved before the bytes have arrived,
// so that a forged length costs nothing.
const piece = 64 << 10

// source reads an input, counts the bytes that were read and computes their checksum. It peeks into
// the input's buffer and consumes only the bytes that were requested.
type source struct {
	in *bufio.Reader
	// window has the buffered bytes of the input, of which the first at bytes have been read.
	window []byte
	at     int
	// before is the number of bytes before window, and sum is the checksum of these bytes.
	before int64
	sum    uint64
}

// offset returns the number of bytes that have been read.
func (s *source) offset() int64 { return s.before + int64(s.at) }

// settle consumes the bytes of window that have been read. It adds them to the checksum, and their
// number to before.
func (s *source) settle() {
	s.sum = addSum(s.sum, s.window[:s.at])
	s.before += int64(s.at)
	_, _ = s.in.Discard(s.at) // there is no error, since the bytes are buffered
	s.window, s.at = nil, 0
}

// fill refills window: it waits until the input has at least one more byte. At the end of the input
// the error is io.ErrUnexpectedEOF.
func (s *source) fill() error {
	s.settle()
	if _, err := s.in.Peek(1); err != nil {
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	s.window, _ = s.in.Peek(s.in.Buffered())
	return nil
}

func (s *source) byte() (byte, error) {
	if s.at == len(s.window) {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	b := s.window[s.at]
	s.at++
	return b, nil
}

// read appends the next n bytes to dst and returns the result. If n is at most [piece], it reserves
// memory for all of them at once, otherwise only as bytes arrive. If dst has room for n more bytes,
// it is not moved.
func (s *source) read(dst []byte, n int64) ([]byte, error) {
	if n <= piece {
		dst = slices.Grow(dst, int(n))
	}
	for n > 0 {
		if s.at == len(s.window) {
			if err := s.fill(); err != nil {
				return dst, err
			}
		}
		part := s.window[s.at:]
		part = part[:min(n, int64(len(part)))]
		dst = append(dst, part...)
		s.at += len(part)
		n -= int64(len(part))
	}
	return dst, nil
}

// skip skips n bytes, which still count and are part of the checksum.
func (s *source) skip(n uint64) error {
	for n > 0 {
		if s.at == len(s.window) {
			if err := s.fill(); err != nil {
				return err
			}
		}
		part := min(n, uint64(len(s.window)-s.at))
		s.at += int(part)
		n -= part
	}
	return nil
}

// number reads an unsigned number of size bytes, at most 8, the least significant byte first.
func (s *source) number(size int) (uint64, error) {
	var b [8]byte
	for i := range size {
		next, err := s.byte()
		if err != nil {
			return 0, err
		}
		b[i] = next
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

// big reads an unsigned number of size bytes, at most 8, the most significant byte first.
func (s *source) big(size int) (n uint64, err error) {
	for range size {
		b, err := s.byte()
		if err != nil {
			return 0, err
		}
		n = n<<8 | uint64(b)
	}
	return n, nil
}
