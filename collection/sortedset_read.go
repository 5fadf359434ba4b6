package collection

import (
	"encoding/binary"
	"iter"
)

// Score returns the score of a member.
func (s *SortedSet) Score(member []byte) (score float64, ok bool) {
	if s.tree != nil {
		score, ok = s.scores[string(member)]
		return score, ok
	}
	score, _, _, _, ok = s.find(member)
	return score, ok
}

// Rank returns the rank of a member.
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

// Search returns the smallest rank whose element is beyond, or Len if there is none. All elements
// after one that is beyond must be beyond, too.
func (s *SortedSet) Search(beyond func(member []byte, score float64) bool) int {
	return s.SearchIn(0, s.count, beyond)
}

// SearchIn is Search among the elements from rank from to rank to-1, and returns to if none is
// beyond. It examines both ends first, because the lookups in a log of requests are there.
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

// nearFront is the number of elements that are searched at the front before a binary search of the
// rest.
const nearFront = 16

func (s *SortedSet) searchTree(from, to int, beyond func([]byte, float64) bool) int {
	at := func(rank int) bool {
		e, _ := s.tree.GetAt(rank)
		return beyond(bytesOf(e.member), e.score)
	}
	to--
	if !at(to) {
		return to + 1
	}
	// All elements before from are not beyond, and the one at to is.
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

// Range iterates over the elements from rank from to rank to-1, upwards. The set must not be
// changed meanwhile.
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

// ascend yields n elements from a rank on.
func (s *SortedSet) ascend(rank, n int, yield func([]byte, float64) bool) {
	first, _ := s.tree.GetAt(rank)
	s.tree.Ascend(first, func(e ranked) bool {
		n--
		return yield(bytesOf(e.member), e.score) && n > 0
	})
}

// RangeDown iterates over the same elements as Range, downwards.
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

// flatDown yields elements of the flat bytes downwards. Elements cannot be decoded backwards, so it
// first notes their offsets.
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

// descend yields n elements from a rank down.
func (s *SortedSet) descend(rank, n int, yield func([]byte, float64) bool) {
	last, _ := s.tree.GetAt(rank)
	s.tree.Descend(last, func(e ranked) bool {
		n--
		return yield(bytesOf(e.member), e.score) && n > 0
	})
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
