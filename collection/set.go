package collection

import (
	"iter"

	"github.com/cellserver/cellserver/shared"
)

// Set is a set of members of any bytes. Iteration is in the order in which the members were added.
//
// The methods except Load copy their arguments, which must not be slices that the same set
// returned. Returned slices are valid until the set is changed, or as long as it is pinned.
type Set struct {
	// Max is the maximum number of members; 0 means no limit.
	Max int
	d   dict
}

// Load sets s to the set that the bytes in flat encode. flat must have passed [CheckSet] or come
// from a set; see [Hash.Load].
func (s *Set) Load(flat []byte) { s.d.load(flat) }

// Len returns the number of members.
func (s *Set) Len() int { return s.d.count }

// Has reports whether member is in the set.
func (s *Set) Has(member []byte) bool {
	_, ok := s.d.get(member)
	return ok
}

// At returns the member with the given number, from 0 to Len()-1. The numbers have no relation to
// the order of the members, and any change of the set may change them. The first call for a large
// set takes time proportional to Len; later calls do not.
func (s *Set) At(number int) []byte { return s.d.at(number) }

// Add adds member. added reports whether member is new; if it is not, nothing is changed. The error
// is [ErrFull]; then nothing is changed either.
func (s *Set) Add(member []byte) (added bool, err error) {
	if s.Has(member) {
		return false, nil
	}
	return s.d.set(member, nil, s.Max)
}

// Remove removes member, and reports whether it existed.
func (s *Set) Remove(member []byte) bool { return s.d.remove(member) }

// All iterates over the members in the order in which they were added. The set must not be changed
// during the iteration.
func (s *Set) All() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		s.d.each(func(member, _ []byte) bool { return yield(member) })
	}
}

// Flat returns the bytes of a small set without a copy: see [Hash.Flat].
func (s *Set) Flat() (flat []byte, ok bool) { return s.d.flat() }

// AppendFlat appends the flat bytes of a set of any size to dst and returns the result.
func (s *Set) AppendFlat(dst []byte) []byte { return s.d.appendFlat(dst) }

// Cost returns the approximate number of bytes of memory that the members of a large set take. It
// returns 0 for a small set.
func (s *Set) Cost() int64 { return s.d.cost }

// Delta returns the effects of all changes since the last Load or ResetDelta: see [Hash.Delta].
func (s *Set) Delta() []byte { return s.d.delta }

// ResetDelta empties the delta, after its effects have been recorded.
func (s *Set) ResetDelta() { s.d.delta = resetDelta(s.d.delta) }

// SetLedger makes ledger count the memory of removed members for as long as replies refer to them.
// If ledger is nil, this memory is not counted.
func (s *Set) SetLedger(ledger shared.Ledger) { s.d.ledger = ledger }

// Drop gives up the long members: see [Hash.Drop].
func (s *Set) Drop() { s.d.drop() }

// Copied returns the number of bytes that a reply with a whole large set takes: see [List.Copied].
// It returns 0 for a small set.
func (s *Set) Copied() int { return s.d.copied(s.d.bytes) }

// Apply replays delta, which may be any bytes: see [Hash.Apply].
func (s *Set) Apply(delta []byte) error { return s.d.apply(delta, false) }

// CheckSet returns [ErrCorrupt] unless flat has the flat bytes of a set. flat may be any bytes.
func CheckSet(flat []byte) error { return checkDict(flat, false) }
