package collection

import (
	"encoding/binary"
	"math"
)

// scoreSize is the size of a score in the flat form.
const scoreSize = 8

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

func (s *SortedSet) appendFlat(dst []byte) []byte {
	if b, ok := s.Flat(); ok {
		return append(dst, b...)
	}
	dst = binary.AppendUvarint(dst, uint64(s.count))
	for member, score := range s.Range(0, s.count) {
		dst = appendElement(appendScore(dst, score), member)
	}
	return dst
}

// less orders elements by score, then member.
func less(score float64, member []byte, otherScore float64, other []byte) bool {
	if score != otherScore {
		return score < otherScore
	}
	return string(member) < string(other)
}

func appendScore(dst []byte, score float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(score))
}

// cutScored takes an element off bytes that are known to be whole.
func cutScored(b []byte) (score float64, member, rest []byte) {
	score = math.Float64frombits(binary.LittleEndian.Uint64(b))
	member, rest, _ = cut(b[scoreSize:])
	return score, member, rest
}

// elements returns the flat bytes behind the count.
func (s *SortedSet) elements() []byte {
	if s.count == 0 {
		return nil
	}
	return s.flatForm.b[1:]
}

// offset returns where the element with a rank begins in the flat bytes.
func (s *SortedSet) offset(rank int) int {
	b := s.elements()
	for range rank {
		_, b, _ = cut(b[scoreSize:])
	}
	return len(s.flatForm.b) - len(b)
}

// find looks a member up in the flat bytes.
func (s *SortedSet) find(member []byte) (score float64, rank, begin, end int, ok bool) {
	for b := s.elements(); len(b) > 0; rank++ {
		begin = len(s.flatForm.b) - len(b)
		var m []byte
		score, m, b = cutScored(b)
		if string(m) == string(member) {
			return score, rank, begin, len(s.flatForm.b) - len(b), true
		}
	}
	return 0, 0, 0, 0, false
}

// put gives a member a score to the bit.
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

// place returns where an element belongs in the flat bytes, among those that are
// there, whatever count says.
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

// delAt removes the element with a rank, which must exist.
func (s *SortedSet) delAt(rank int) {
	if s.tree != nil {
		s.delTreeAt(rank)
		return
	}
	begin := s.offset(rank)
	_, member, _ := cutScored(s.flatForm.b[begin:])
	s.cutOut(begin, begin+scoreSize+elementSize(len(member)))
}

// cutOut removes the one element in flat bytes.
func (s *SortedSet) cutOut(begin, end int) {
	s.flatForm.gap(begin, end-begin, 0)
	s.count--
	s.flatForm.b[0] = byte(s.count)
}

// flatDown yields elements of the flat bytes downwards: elements have no length at
// their end, so it first notes where they begin.
func (s *SortedSet) flatDown(from, to int, yield func([]byte, float64) bool) {
	var begins [flatElements]int
	b := s.flatForm.b[s.offset(from):]
	for i := range to - from {
		begins[i] = len(s.flatForm.b) - len(b)
		_, b, _ = cut(b[scoreSize:])
	}
	for i := to - from - 1; i >= 0; i-- {
		score, member, _ := cutScored(s.flatForm.b[begins[i]:])
		if !yield(member, score) {
			return
		}
	}
}
