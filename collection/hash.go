package collection

import (
	"iter"

	"github.com/cellserver/cellserver/shared"
)

// Hash maps fields to values; both may be any bytes. Iteration is in the order in which fields were
// first set. Setting a field again keeps its place in the order, and a field that was deleted is
// added at the end when it is set again. Small hashes of Redis have the same order.
//
// The methods except Load copy their arguments, which must not be slices that the same hash
// returned. Returned slices are valid until the hash is changed, or as long as it is pinned.
type Hash struct {
	// Max is the maximum number of fields; 0 means no limit.
	Max int
	// Tight makes Set refuse, with [ErrFull], to replace a value by one that takes more memory: by
	// a longer value, or by any value if a reply refers to the old one.
	Tight bool
	d     dict
}

// Load sets h to the hash that the bytes in flat encode. flat must have passed [CheckHash] or come
// from a hash. It clears the delta. If the hash is small, it reads flat until its first change, and
// flat must not change until then. If it is large, Load copies the elements to a map. The hash
// never writes to flat.
func (h *Hash) Load(flat []byte) { h.d.load(flat) }

// Len returns the number of fields.
func (h *Hash) Len() int { return h.d.count }

// Get returns the value of field. ok is false if there is no such field.
func (h *Hash) Get(field []byte) (value []byte, ok bool) { return h.d.get(field) }

// Set sets field to value. added reports whether the field is new. Setting the value that the field
// already has is a change, too, as in Redis. The error is [ErrFull]; then nothing is changed.
func (h *Hash) Set(field, value []byte) (added bool, err error) {
	if h.Tight {
		if old, ok := h.d.get(field); ok && h.d.grows(old, value) {
			return false, ErrFull
		}
	}
	return h.d.set(field, value, h.Max)
}

// Delete removes field, and reports whether it existed.
func (h *Hash) Delete(field []byte) bool { return h.d.remove(field) }

// All iterates over the fields and their values in the order of the hash. The hash must not be
// changed during the iteration.
func (h *Hash) All() iter.Seq2[[]byte, []byte] { return h.d.each }

// Flat returns flat, the bytes of a small hash, without a copy. flat is nil for an empty hash, and
// valid until the hash is changed. For a large hash ok is false.
func (h *Hash) Flat() (flat []byte, ok bool) { return h.d.flat() }

// AppendFlat appends the flat bytes of a hash of any size to dst and returns the result.
func (h *Hash) AppendFlat(dst []byte) []byte { return h.d.appendFlat(dst) }

// Cost returns the approximate number of bytes of memory that the elements of a large hash take. It
// returns 0 for a small hash.
func (h *Hash) Cost() int64 { return h.d.cost }

// Delta returns the effects of all changes since the last Load or ResetDelta. It is empty if there
// were none, and valid until the hash is changed.
func (h *Hash) Delta() []byte { return h.d.delta }

// ResetDelta empties the delta, after its effects have been recorded.
func (h *Hash) ResetDelta() { h.d.delta = resetDelta(h.d.delta) }

// SetLedger makes ledger count the memory of removed fields and values for as long as replies refer
// to them. If ledger is nil, this memory is not counted.
func (h *Hash) SetLedger(ledger shared.Ledger) { h.d.ledger = ledger }

// Drop gives up the long fields and values. Replies that refer to them keep them in memory, and the
// ledger counts them until these replies have been sent. Drop is called when the hash has been
// removed from the keyspace. The hash must not be used afterwards.
func (h *Hash) Drop() { h.d.drop() }

// Copied returns the number of bytes that a reply with a whole large hash takes: see [List.Copied].
// It returns 0 for a small hash.
func (h *Hash) Copied() int { return h.d.copied(h.d.bytes) }

// Apply replays delta, which may be any bytes. It ignores Max and Tight, and adds nothing to the
// hash's own delta. The error is [ErrCorrupt], if delta is not the delta of a hash; then nothing is
// changed.
func (h *Hash) Apply(delta []byte) error { return h.d.apply(delta, true) }

// CheckHash returns [ErrCorrupt] unless flat has the flat bytes of a hash. flat may be any bytes.
func CheckHash(flat []byte) error { return checkDict(flat, true) }
