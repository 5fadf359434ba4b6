package rdb

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"slices"
)

// piece is how many bytes are reserved at most before the first of them has come, so that
// a forged length costs nothing.
const piece = 64 << 10

// source gives the bytes of an input one after another, counts them and sums them up. It
// looks at what the input has buffered and takes from it only what was asked for.
type source struct {
	in *bufio.Reader
	// window is what in has buffered, of which the first at bytes were given.
	window []byte
	at     int
	// before is how many bytes came before window, and sum their checksum.
	before int64
	sum    uint64
}

// offset is how many bytes were given.
func (s *source) offset() int64 { return s.before + int64(s.at) }

// settle takes what was given from the input, and adds it to the checksum.
func (s *source) settle() {
	s.sum = addSum(s.sum, s.window[:s.at])
	s.before += int64(s.at)
	_, _ = s.in.Discard(s.at) // it is buffered, so it is there
	s.window, s.at = nil, 0
}

// fill waits until there is a byte.
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

// read appends the next n bytes to dst. It reserves at once what is needed for n up to
// [piece], and beyond only grows by what has come. If dst has room for n bytes it is not
// moved.
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

// skip passes over n bytes.
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

// number reads size bytes, at most 8, the least significant first.
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

// big reads size bytes, at most 8, the most significant first.
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
