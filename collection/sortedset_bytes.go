package collection

import "math"

// opScore is the first byte of an effect in the delta of a sorted set: it sets the score of a
// member. The only other effect is opGone.
const opScore = opGone + 1

// Apply replays delta, which may be any bytes: see [Hash.Apply].
func (s *SortedSet) Apply(delta []byte) error {
	for b := delta; len(b) > 0; {
		_, _, _, rest, ok := cutScoreEffect(b)
		if !ok {
			return ErrCorrupt
		}
		b = rest
	}
	for b := delta; len(b) > 0; {
		op, score, member, rest, _ := cutScoreEffect(b)
		b = rest
		if op == opGone {
			s.del(member)
		} else {
			s.put(member, score)
		}
	}
	return nil
}

// cutScoreEffect decodes the first effect of b, a part of a delta, which must not be empty. rest is
// the rest of b. score is 0 if op is opGone. ok is false if b does not begin with an effect.
func cutScoreEffect(b []byte) (op byte, score float64, member, rest []byte, ok bool) {
	op, b = b[0], b[1:]
	switch op {
	case opScore:
		score, member, rest, ok = cutScoredHostile(b)
	case opGone:
		member, rest, ok = cut(b)
	}
	return op, score, member, rest, ok
}

// cutScoredHostile does what cutScored does, but b may be any bytes. ok is false if b does not
// begin with an element, or if the score of the element is NaN.
func cutScoredHostile(b []byte) (score float64, member, rest []byte, ok bool) {
	if len(b) <= scoreSize {
		return 0, nil, nil, false
	}
	if _, _, ok = cut(b[scoreSize:]); !ok {
		return 0, nil, nil, false
	}
	score, member, rest = cutScored(b)
	return score, member, rest, !math.IsNaN(score)
}

// CheckSortedSet returns [ErrCorrupt] unless flat has the flat bytes of a sorted set. flat may be
// any bytes.
func CheckSortedSet(flat []byte) error {
	if len(flat) == 0 {
		return nil
	}
	n, b, ok := cutUvarint(flat)
	// An element has at least nine bytes, so a larger count is invalid.
	if !ok || n == 0 || n > uint64(len(b)/(scoreSize+1)) {
		return ErrCorrupt
	}
	seen := make(map[string]struct{}, n)
	var last []byte
	lastScore := math.Inf(-1)
	for i := range n {
		score, member, rest, ok := cutScoredHostile(b)
		if !ok || i > 0 && !less(lastScore, last, score, member) {
			return ErrCorrupt
		}
		if _, twice := seen[bytesAsString(member)]; twice {
			return ErrCorrupt
		}
		seen[bytesAsString(member)] = struct{}{}
		last, lastScore, b = member, score, rest
	}
	if len(b) > 0 {
		return ErrCorrupt
	}
	return nil
}
