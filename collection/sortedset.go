package collection

import (
	"iter"

	"github.com/tidwall/btree"
)

// SortedSet maps members, any bytes, to scores, and keeps them in the order of score,
// then member by bytes. The rank of an element is its place in that order from 0. A
// score may be infinite but not NaN, which callers have to refuse; 0 and -0 are equal
// in order, and each is returned as it was set.
//
// In a large set a lookup by member is one in a map, one by rank takes O(log n), and
// one of a rank by score or member O(log² n): the tree counts, but finds by position
// only.
//
// Arguments are copied. They must not be slices that the same set has returned. What
// it returns is valid until its next change, or as long as the set is pinned.
type SortedSet struct {
	// Max is the most elements it may have; 0 is no limit.
	Max int

	flatForm flat
	count    int

	// A large one is a tree of the elements in order and a map of the scores; both are
	// nil while it is flat. bytes is how large its elements would be in the flat form.
	tree   *btree.BTreeG[ranked]
	scores map[string]float64
	bytes  int
	cost   int64
	longs

	delta []byte
}

// Load makes s what flat says; see [Hash.Load].
func (s *SortedSet) Load(flat []byte) { s.load(flat) }

// Len returns the number of elements.
func (s *SortedSet) Len() int { return s.count }

// Score returns the score of a member.
func (s *SortedSet) Score(member []byte) (score float64, ok bool) {
	if s.tree != nil {
		score, ok = s.scores[string(member)]
		return score, ok
	}
	score, _, _, _, ok = s.find(member)
	return score, ok
}

// Set gives a member a score, and says whether it is a new one. If it has an equal
// score already, nothing changes. The error is [ErrFull].
func (s *SortedSet) Set(member []byte, score float64) (added bool, err error) {
	old, known := s.Score(member)
	if known && old == score {
		return false, nil
	}
	if !known && s.Max > 0 && s.count >= s.Max {
		return false, ErrFull
	}
	if s.tree != nil {
		s.move(member, old, known, score)
	} else {
		s.put(member, score)
	}
	s.delta = appendElement(appendScore(append(s.delta, opScore), score), member)
	return !known, nil
}

// Remove removes a member, and says whether it was there.
func (s *SortedSet) Remove(member []byte) bool {
	if !s.del(member) {
		return false
	}
	s.delta = appendElement(append(s.delta, opGone), member)
	return true
}

// RemoveRange removes the elements whose rank is at least from and less than to, and
// returns their number. Ranks that do not exist are left out.
func (s *SortedSet) RemoveRange(from, to int) (removed int) {
	from, to = max(from, 0), min(to, s.count)
	for range to - from {
		member, _, _ := s.At(from)
		s.delta = appendElement(append(s.delta, opGone), member)
		s.delAt(from)
		removed++
	}
	return removed
}

// At returns the element with a rank, or false if there is none.
func (s *SortedSet) At(rank int) (member []byte, score float64, ok bool) {
	if rank < 0 || rank >= s.count {
		return nil, 0, false
	}
	if s.tree != nil {
		e, _ := s.tree.GetAt(rank)
		return bytesOf(e.member), e.score, true
	}
	score, member, _ = cutScored(s.flatForm.b[s.offset(rank):])
	return member, score, true
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

// Search returns the least rank whose element is beyond, or Len if none is. The
// elements that are must be the last ones.
func (s *SortedSet) Search(beyond func(member []byte, score float64) bool) int {
	return s.SearchIn(0, s.count, beyond)
}

// SearchIn is Search among the elements whose rank is at least from and less than to,
// and returns to if none is. It looks at both ends first, because that is where a log
// of requests is asked.
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

// Range iterates the elements whose rank is at least from and less than to, upwards.
// The set must not be changed meanwhile.
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

// RangeDown iterates the same elements as Range, downwards.
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

// Flat returns the bytes of a small set; see [Hash.Flat].
func (s *SortedSet) Flat() (flat []byte, ok bool) {
	switch {
	case s.tree != nil:
		return nil, false
	case s.count == 0:
		return nil, true
	}
	return s.flatForm.b, true
}

// AppendFlat appends the bytes of a set of any size.
func (s *SortedSet) AppendFlat(dst []byte) []byte { return s.appendFlat(dst) }

// Cost returns roughly the bytes of memory that a large set takes; 0 while it is
// flat.
func (s *SortedSet) Cost() int64 { return s.cost }

// Delta returns the effects of all changes; see [Hash.Delta].
func (s *SortedSet) Delta() []byte { return s.delta }

// ResetDelta forgets the delta.
func (s *SortedSet) ResetDelta() { s.delta = resetDelta(s.delta) }
