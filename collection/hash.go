package collection

import (
	"iter"

	"github.com/cellserver/cellserver/shared"
)

// Hash maps fields to values; both may be any bytes. Iteration is in the order in which fields were
// first set. Setting a field again keeps its place, and a field that was deleted comes back at the
// end. Small hashes of Redis have the same order.
//
// Arguments are copied. They must not be slices that the same hash has returned. Returned slices
// are valid until the next change, or as long as the hash is pinned.
type Hash struct {
	// Max is the maximum number of fields; 0 means no limit.
	Max int
	// Tight refuses, with [ErrFull], a value that takes more memory than its replacement frees: one
	// that is longer, or that replaces a value to which a reply refers.
	Tight bool
	d     dict
}

// Load makes h the hash in flat, which must have passed [CheckHash] or come from a hash. It clears
// the delta. The hash reads flat, which must not change, until its own first change, and never
// writes to it. A large flat becomes a tree at once and is not kept.
func (h *Hash) Load(flat []byte) { h.d.load(flat) }

// Len returns the number of fields.
func (h *Hash) Len() int { return h.d.count }

// Get returns the value of a field.
func (h *Hash) Get(field []byte) (value []byte, ok bool) { return h.d.get(field) }

// Set sets a field to a value, and reports whether the field is new. Setting the value that the
// field already has is a change, too, as in Redis. The error is [ErrFull].
func (h *Hash) Set(field, value []byte) (added bool, err error) {
	if h.Tight {
		if old, ok := h.d.get(field); ok && h.d.grows(old, value) {
			return false, ErrFull
		}
	}
	return h.d.set(field, value, h.Max)
}

// Delete removes a field, and reports whether it existed.
func (h *Hash) Delete(field []byte) bool { return h.d.remove(field) }

// All iterates over fields and values in the order of the hash, which must not be changed
// meanwhile.
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

// ResetDelta clears the delta.
func (h *Hash) ResetDelta() { h.d.delta = resetDelta(h.d.delta) }

// SetLedger is [List.SetLedger].
func (h *Hash) SetLedger(ledger shared.Ledger) { h.d.ledger = ledger }

// Drop says that the hash has been removed from the store.
func (h *Hash) Drop() { h.d.drop() }

// Copied is [List.Copied].
func (h *Hash) Copied() int { return h.d.copied(h.d.bytes) }

// Apply replays a delta of a hash. It does not change the hash's own delta and ignores Max. The
// error is [ErrCorrupt]; then nothing has been changed.
func (h *Hash) Apply(delta []byte) error { return h.d.apply(delta, true) }

// CheckHash returns [ErrCorrupt] unless flat, which may be any bytes, is a hash.
func CheckHash(flat []byte) error { return checkDict(flat, true) }
