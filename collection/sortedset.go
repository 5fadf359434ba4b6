package collection

import (
	"github.com/tidwall/btree"
)

// SortedSet maps members of any bytes to scores. Its elements are ordered by score, and elements of
// equal score by the bytes of the member. The rank of an element is its index in that order, from
// 0. A score may be infinite but not NaN; callers have to refuse NaN. 0 and -0 are equal scores:
// Set does not replace one by the other.
//
// In a large set a lookup by member is a lookup in a map, and a lookup by rank takes O(log n).
// Finding the rank of a score or member takes O(log² n), because the tree finds elements by index
// only.
//
// The methods except Load copy their arguments, which must not be slices that the same set
// returned. Returned slices are valid until the set is changed, or as long as it is pinned.
type SortedSet struct {
	// Max is the maximum number of elements; 0 means no limit.
	Max int

	flatForm flat
	count    int

	// A large set is a tree of the elements in order and a map of the scores; both are nil while
	// the set is flat. bytes is the size that the elements would have in the flat form, and cost is
	// the number of bytes of memory that they take.
	tree   *btree.BTreeG[ranked]
	scores map[string]float64
	bytes  int
	cost   int64
	longs

	delta []byte
}

// ranked is an element of a large sorted set.
type ranked struct {
	score  float64
	member string
}

// rankedCost is about the number of bytes that an element takes in addition to its member: 24 bytes
// in the tree, 24 in the map, and the free slots that both keep.
const rankedCost = 48 + 40

// rankedLess reports whether a comes before b in the order.
func rankedLess(a, b ranked) bool {
	if a.score != b.score {
		return a.score < b.score
	}
	return a.member < b.member
}

// Len returns the number of elements.
func (s *SortedSet) Len() int { return s.count }

// Flat returns the bytes of a small set without a copy: see [Hash.Flat].
func (s *SortedSet) Flat() (flat []byte, ok bool) {
	switch {
	case s.tree != nil:
		return nil, false
	case s.count == 0:
		return nil, true
	}
	return s.flatForm.b, true
}

// Cost returns the approximate number of bytes of memory that the elements of a large set take. It
// returns 0 for a small set.
func (s *SortedSet) Cost() int64 { return s.cost }

// Delta returns the effects of all changes since the last Load or ResetDelta: see [Hash.Delta].
func (s *SortedSet) Delta() []byte { return s.delta }

// ResetDelta empties the delta, after its effects have been recorded.
func (s *SortedSet) ResetDelta() { s.delta = resetDelta(s.delta) }

// Drop gives up the long members: see [Hash.Drop].
func (s *SortedSet) Drop() {
	if s.long == 0 || s.tree == nil {
		return
	}
	for member := range s.scores {
		s.gone(bytesOf(member))
	}
	s.long = 0
}

// Copied returns about the number of bytes that a reply with all elements of a large set takes: see
// [List.Copied]. It returns 0 for a small set.
func (s *SortedSet) Copied() int { return s.copied(s.bytes) }

// Load sets s to the sorted set that the bytes in flat encode. flat must have passed
// [CheckSortedSet] or come from a sorted set; see [Hash.Load].
func (s *SortedSet) Load(flat []byte) { s.load(flat) }

// Set sets the score of member. added reports whether the member is new. If the member has an equal
// score already, nothing is changed. The error is [ErrFull]; then nothing is changed either.
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

// Remove removes member, and reports whether it existed.
func (s *SortedSet) Remove(member []byte) bool {
	if !s.del(member) {
		return false
	}
	s.delta = appendElement(append(s.delta, opGone), member)
	return true
}

// RemoveRange removes the elements whose ranks are in [from, to), as far as they exist, and returns
// their number.
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

// At returns the member and the score of the element with the given rank. ok is false if there is
// no such rank.
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

// AppendFlat appends the flat bytes of a set of any size to dst and returns the result.
func (s *SortedSet) AppendFlat(dst []byte) []byte { return s.appendFlat(dst) }
