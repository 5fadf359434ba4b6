package collection

// Load makes s what flat says; see [Hash.Load].
func (s *SortedSet) Load(flat []byte) { s.load(flat) }

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

// AppendFlat appends the bytes of a set of any size.
func (s *SortedSet) AppendFlat(dst []byte) []byte { return s.appendFlat(dst) }
