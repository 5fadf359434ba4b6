package collection

import (
	"iter"

	"github.com/cellserver/cellserver/shared"
)

// Hash maps fields to values, both any bytes. It is iterated in the order in which
// fields were first set; setting a field again leaves it where it is, and one that
// was deleted comes back at the end. Small hashes of Redis have the same order.
//
// Arguments are copied. They must not be slices that the same hash has returned.
// What it returns is valid until its next change, or as long as the hash is pinned.
type Hash struct {
	// Max is the most fields it may have; 0 is no limit.
	Max int
	// Tight refuses a value that takes more memory than the one in its place gives back,
	// with [ErrFull]: one that is longer, or in the place of one that a reply refers to.
	Tight bool
	d     dict
}

// Load makes h what flat says, which must have passed [CheckHash] or come from a
// hash. It forgets any delta. The hash reads flat, which must stay unchanged, until
// it is first changed itself, and never writes to it. A large flat becomes a tree
// at once and is not referred to.
func (h *Hash) Load(flat []byte) { h.d.load(flat) }

// Len returns the number of fields.
func (h *Hash) Len() int { return h.d.count }

// Get returns the value of a field.
func (h *Hash) Get(field []byte) (value []byte, ok bool) { return h.d.get(field) }

// Set gives a field a value, and says whether it is a new one. Setting what is
// there already is a change, too, as it is for Redis. The error is [ErrFull].
func (h *Hash) Set(field, value []byte) (added bool, err error) {
	if h.Tight {
		if old, ok := h.d.get(field); ok && h.d.grows(old, value) {
			return false, ErrFull
		}
	}
	return h.d.set(field, value, h.Max)
}

// Delete removes a field, and says whether it was there.
func (h *Hash) Delete(field []byte) bool { return h.d.remove(field) }

// All iterates fields and values in the order of the hash, which must not be
// changed meanwhile.
func (h *Hash) All() iter.Seq2[[]byte, []byte] { return h.d.each }

// Flat returns the bytes of a small hash, valid until its next change, or false
// for a large one. They are no copy.
func (h *Hash) Flat() (flat []byte, ok bool) { return h.d.flat() }

// AppendFlat appends the bytes of a hash of any size.
func (h *Hash) AppendFlat(dst []byte) []byte { return h.d.appendFlat(dst) }

// Cost returns roughly the bytes of memory that a large hash takes; 0 while it is
// flat.
func (h *Hash) Cost() int64 { return h.d.cost }

// Delta returns the effects of all changes since Load or ResetDelta; empty if there
// were none. It is valid until the next change.
func (h *Hash) Delta() []byte { return h.d.delta }

// ResetDelta forgets the delta.
func (h *Hash) ResetDelta() { h.d.delta = resetDelta(h.d.delta) }

// SetLedger is [List.SetLedger].
func (h *Hash) SetLedger(ledger shared.Ledger) { h.d.ledger = ledger }

// Drop says that the hash is not in the store any more.
func (h *Hash) Drop() { h.d.drop() }

// Copied is [List.Copied].
func (h *Hash) Copied() int { return h.d.copied(h.d.bytes) }

// Apply replays a delta of a hash. It leaves the hash's own delta alone and does not
// look at Max. The error is [ErrCorrupt]; nothing has been changed then.
func (h *Hash) Apply(delta []byte) error { return h.d.apply(delta, true) }

// CheckHash says whether bytes that may be anything are those of a hash. The error
// is [ErrCorrupt].
func CheckHash(flat []byte) error { return checkDict(flat, true) }
