package collection

import (
	"encoding/binary"
	"math"
)

// scoreSize is the number of bytes of a score in the flat form.
const scoreSize = 8

// less reports whether the element with score and member comes before the one with otherScore and
// other.
func less(score float64, member []byte, otherScore float64, other []byte) bool {
	if score != otherScore {
		return score < otherScore
	}
	return string(member) < string(other)
}

func appendScore(dst []byte, score float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(score))
}

// cutScored decodes the element at the beginning of b, which is known to be valid, and returns the
// rest of b.
func cutScored(b []byte) (score float64, member, rest []byte) {
	score = math.Float64frombits(binary.LittleEndian.Uint64(b))
	member, rest, _ = cut(b[scoreSize:])
	return score, member, rest
}

// elements returns the flat bytes after the count; nil for an empty set.
func (s *SortedSet) elements() []byte {
	if s.count == 0 {
		return nil
	}
	return s.flatForm.b[1:]
}

// offset returns the offset in the flat bytes at which the element with the given rank begins.
func (s *SortedSet) offset(rank int) int {
	b := s.elements()
	for range rank {
		_, b, _ = cut(b[scoreSize:])
	}
	return len(s.flatForm.b) - len(b)
}

// find looks up member in the flat bytes. It returns the score and the rank of the element, and
// begin and end, the offsets at which the element begins and ends. ok is false if there is no such
// member.
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
