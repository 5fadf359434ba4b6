package collection

import (
	"encoding/binary"
	"math"
)

// load makes s the sorted set with the flat bytes b, which are valid, and clears the delta.
func (s *SortedSet) load(b []byte) {
	s.tree, s.scores, s.bytes, s.cost, s.count = nil, nil, 0, 0, 0
	s.long, s.longBytes = 0, 0
	s.delta = resetDelta(s.delta)
	s.flatForm.load(b)
	if len(b) == 0 {
		return
	}
	n, rest, _ := cutUvarint(b)
	s.count = int(n)
	if n > flatElements || len(b) > flatBytes {
		s.grow(rest)
	}
}

// put sets the score of member, without a delta. It replaces 0 by -0 and the reverse. It makes the
// set a large one if necessary.
func (s *SortedSet) put(member []byte, score float64) {
	if s.tree != nil {
		s.putTree(member, score)
		return
	}
	_, _, begin, end, known := s.find(member)
	size := scoreSize + elementSize(len(member))
	if !known && (s.count >= flatElements || max(len(s.flatForm.b), 1)+size > flatBytes) {
		s.grow(s.elements())
		s.putTree(member, score)
		return
	}
	if known {
		s.flatForm.gap(begin, end-begin, 0)
	} else {
		if s.count == 0 {
			s.flatForm.gap(0, len(s.flatForm.b), 1)
		}
		s.count++
	}
	at := s.place(member, score)
	b := s.flatForm.gap(at, 0, size)
	binary.LittleEndian.PutUint64(b, math.Float64bits(score))
	putElement(b[scoreSize:], member)
	s.flatForm.b[0] = byte(s.count)
}

// place returns the offset in the flat bytes at which an element with the given member and score
// belongs. It does not use count.
func (s *SortedSet) place(member []byte, score float64) int {
	all := s.flatForm.b
	for b := all[1:]; len(b) > 0; {
		sc, m, rest := cutScored(b)
		if less(score, member, sc, m) {
			return len(all) - len(b)
		}
		b = rest
	}
	return len(all)
}

// del removes member, without a delta, and reports whether it existed.
func (s *SortedSet) del(member []byte) bool {
	if s.tree != nil {
		return s.delTree(member)
	}
	_, _, begin, end, ok := s.find(member)
	if ok {
		s.cutOut(begin, end)
	}
	return ok
}

// delAt removes the element with the given rank, which must exist, without a delta.
func (s *SortedSet) delAt(rank int) {
	if s.tree != nil {
		s.delTreeAt(rank)
		return
	}
	begin := s.offset(rank)
	_, member, _ := cutScored(s.flatForm.b[begin:])
	s.cutOut(begin, begin+scoreSize+elementSize(len(member)))
}

// cutOut removes the element at the offsets from begin to end-1 of the flat bytes.
func (s *SortedSet) cutOut(begin, end int) {
	s.flatForm.gap(begin, end-begin, 0)
	s.count--
	s.flatForm.b[0] = byte(s.count)
}
