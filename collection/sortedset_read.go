package collection

import (
	"encoding/binary"
	"iter"
)

// Score returns the score of member. ok is false if there is no such member.
func (s *SortedSet) Score(member []byte) (score float64, ok bool) {
	if s.tree != nil {
		score, ok = s.scores[string(member)]
		return score, ok
	}
	score, _, _, _, ok = s.find(member)
	return score, ok
}

// Rank returns the rank and the score of member. ok is false if there is no such member.
func (s *SortedSet) Rank(member []byte) (rank int, score float64, ok bool) {
	score, ok = s.Score(member)
	if !ok {
		return 0, 0, false
	}
	rank = s.Search(func(m []byte, sc float64) bool {
		return !less(sc, m, score, member)
	})
	return rank, score, true
}

// Search returns the smallest rank for whose element beyond returns true, or Len if there is none.
// If beyond returns true for an element, it must do so for all elements after it.
func (s *SortedSet) Search(beyond func(member []byte, score float64) bool) int {
	return s.SearchIn(0, s.count, beyond)
}

// SearchIn does what [SortedSet.Search] does, but only among the elements whose ranks are in [from,
// to). If beyond returns true for none of them, the result is to, or Len if to is larger. In a
// large set, SearchIn examines both ends first, because lookups in a log of requests are usually
// there.
func (s *SortedSet) SearchIn(from, to int, beyond func(member []byte, score float64) bool) int {
	from, to = max(from, 0), min(to, s.count)
	if s.tree != nil && from < to {
		return s.searchTree(from, to, beyond)
	}
	for member, score := range s.Range(from, to) {
		if beyond(member, score) {
			break
		}
		from++
	}
	return from
}

// nearFront is the distance from the first element at which searchTree examines an element before
// the binary search, which then covers only the elements before or behind that one.
const nearFront = 16

// searchTree does what SearchIn does in a large set. from must be less than to.
func (s *SortedSet) searchTree(from, to int, beyond func([]byte, float64) bool) int {
	at := func(rank int) bool {
		e, _ := s.tree.GetAt(rank)
		return beyond(bytesOf(e.member), e.score)
	}
	to--
	if !at(to) {
		return to + 1
	}
	// beyond returns false for all elements before the one at from, and true for the one at to.
	if near := from + nearFront; near < to {
		if at(near) {
			to = near
		} else {
			from = near + 1
		}
	}
	if from < to && at(from) {
		return from
	}
	for from < to {
		middle := int(uint(from+to) / 2)
		if at(middle) {
			to = middle
		} else {
			from = middle + 1
		}
	}
	return from
}

// Range iterates over the elements whose ranks are in [from, to), as far as they exist, in
// ascending order. The set must not be changed during the iteration.
func (s *SortedSet) Range(from, to int) iter.Seq2[[]byte, float64] {
	from, to = max(from, 0), min(to, s.count)
	return func(yield func([]byte, float64) bool) {
		switch {
		case from >= to:
		case s.tree != nil:
			s.ascend(from, to-from, yield)
		default:
			b := s.flatForm.b[s.offset(from):]
			for range to - from {
				var member []byte
				var score float64
				score, member, b = cutScored(b)
				if !yield(member, score) {
					return
				}
			}
		}
	}
}

// ascend yields n elements of a large set in ascending order, from the element with the given rank
// on.
func (s *SortedSet) ascend(rank, n int, yield func([]byte, float64) bool) {
	first, _ := s.tree.GetAt(rank)
	s.tree.Ascend(first, func(e ranked) bool {
		n--
		return yield(bytesOf(e.member), e.score) && n > 0
	})
}

// RangeDown iterates over the same elements as [SortedSet.Range], in descending order. The set must
// not be changed during the iteration.
func (s *SortedSet) RangeDown(from, to int) iter.Seq2[[]byte, float64] {
	from, to = max(from, 0), min(to, s.count)
	return func(yield func([]byte, float64) bool) {
		switch {
		case from >= to:
		case s.tree != nil:
			s.descend(to-1, to-from, yield)
		default:
			s.flatDown(from, to, yield)
		}
	}
}

// flatDown yields the elements of a small set from rank to-1 down to rank from. Elements cannot be
// decoded backwards, so flatDown first notes their offsets.
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

// descend yields n elements of a large set in descending order, from the element with the given
// rank on.
func (s *SortedSet) descend(rank, n int, yield func([]byte, float64) bool) {
	last, _ := s.tree.GetAt(rank)
	s.tree.Descend(last, func(e ranked) bool {
		n--
		return yield(bytesOf(e.member), e.score) && n > 0
	})
}

// appendFlat does what [SortedSet.AppendFlat] does.
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
