package rdb

// intset decodes the packed encoding of sets of integers: the size of an integer (u32: 2, 4 or 8),
// the number of integers (u32), and the integers.
type intset struct {
	cursor
	size int // size of an integer in bytes
}

// newIntset returns a decoder of blob, whose header it checks.
func newIntset(blob []byte) (packed, error) {
	s := &intset{cursor: cursor{rest: blob}}
	size, n := s.little(4), s.little(4)
	if s.short || size != 2 && size != 4 && size != 8 || uint64(len(s.rest)) != size*n {
		return nil, corrupt("intset of %d bytes says %d integers of %d", len(blob), n, size)
	}
	s.size = int(size)
	return s, nil
}

// next returns the next integer: see packed.
func (s *intset) next() (e item, more bool, err error) {
	if len(s.rest) == 0 {
		return e, false, nil
	}
	return item{number: s.signed(s.size)}, true, nil
}
