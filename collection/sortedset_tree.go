package collection

import (
	"math"

	"github.com/tidwall/btree"
)

// grow makes the set a large one. elements has its s.count elements in the flat form, without the
// count.
func (s *SortedSet) grow(elements []byte) {
	s.tree = btree.NewBTreeGOptions(rankedLess, btree.Options{NoLocks: true})
	s.scores = make(map[string]float64, s.count+1)
	s.count = 0
	for b := elements; len(b) > scoreSize; {
		var score float64
		var member []byte
		score, member, b = cutScored(b)
		e := ranked{score, ownString(member)}
		// The elements are in order already.
		s.tree.Load(e)
		s.scores[e.member] = score
		s.account(e.member, 1)
	}
	s.flatForm.drop()
}

// shrink makes a large set a flat one if it has become small enough.
func (s *SortedSet) shrink() {
	if s.count > backElements || s.bytes > backBytes {
		return
	}
	b := s.appendFlat(make([]byte, 0, 2*s.bytes+1))
	s.tree, s.scores, s.bytes, s.cost = nil, nil, 0, 0
	s.flatForm.take(b)
}

// account adds an element with the given member to count, bytes and cost if sign is 1, and
// subtracts it if sign is -1.
func (s *SortedSet) account(member string, sign int) {
	s.count += sign
	s.bytes += sign * (scoreSize + elementSize(len(member)))
	s.cost += int64(sign)*rankedCost + s.add(bytesOf(member), sign)
}

// putTree does what put does in a large set.
func (s *SortedSet) putTree(member []byte, score float64) {
	old, known := s.scores[string(member)]
	s.move(member, old, known, score)
}

// move sets the score of member in a large set. known reports whether the set has member, and old
// is its old score if it has.
func (s *SortedSet) move(member []byte, old float64, known bool, score float64) {
	if !known {
		e := ranked{score, ownString(member)}
		s.tree.Set(e)
		s.scores[e.member] = score
		s.account(e.member, 1)
		return
	}
	if math.Float64bits(old) == math.Float64bits(score) {
		return
	}
	// The tree returns the string that it and the map share, so that a new score
	// allocates nothing.
	e, _ := s.tree.Delete(ranked{old, bytesAsString(member)})
	e.score = score
	s.tree.Set(e)
	s.scores[e.member] = score
}

// delTree does what del does in a large set.
func (s *SortedSet) delTree(member []byte) bool {
	score, ok := s.scores[string(member)]
	if !ok {
		return false
	}
	e, _ := s.tree.Delete(ranked{score, bytesAsString(member)})
	s.forget(e)
	return true
}

// delTreeAt does what delAt does in a large set.
func (s *SortedSet) delTreeAt(rank int) {
	e, _ := s.tree.DeleteAt(rank)
	s.forget(e)
}

// forget completes the removal of e, which was removed from the tree. It makes the set a flat one
// if it has become small enough.
func (s *SortedSet) forget(e ranked) {
	delete(s.scores, e.member)
	s.account(e.member, -1)
	s.shrink()
}
