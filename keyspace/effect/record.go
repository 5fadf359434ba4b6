package effect

import (
	"encoding/binary"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/shared"
)

// Record collects the effects of one command, or of all commands under the same locks. The zero
// value is empty. Only one goroutine at a time may use a record.
type Record struct {
	buf []byte
	// refs are long values that are not copied into buf but referred to. long is the sum of their
	// lengths in bytes.
	refs []shared.Ref
	long int
	// condensed has the length of buf and the value of long after the last call of Condense; 0
	// before the first.
	condensed struct{ buf, long int }
}

// Empty reports whether the record has no effect.
func (r *Record) Empty() bool { return len(r.buf) == 0 }

// Parts returns the bytes of the record and the long values that belong between these bytes, each
// at its offset At. The caller then owns refs. buf is valid until the record is changed.
func (r *Record) Parts() (buf []byte, refs []shared.Ref) { return r.buf, r.refs }

// Size returns the number of bytes of the record, including the long values that it refers to.
func (r *Record) Size() int { return len(r.buf) + r.long }

// maxKept is the maximum capacity in bytes of a buffer that is kept for the next record.
const maxKept = 64 << 10

// Reset empties the record. It does not release the references to long values, because the caller
// of Parts has taken them over.
func (r *Record) Reset() {
	if r.buf = r.buf[:0]; cap(r.buf) > maxKept {
		r.buf = nil
	}
	if r.refs != nil {
		r.refs, r.long = nil, 0
	}
	r.condensed.buf, r.condensed.long = 0, 0
}

// Put records that the key of database db now holds e. It copies the key and the value.
func (r *Record) Put(db int, key []byte, e *entry.Entry) {
	r.head(db, key, e)
	r.buf = append(r.buf, e.Value...)
}

// head records the part of a put that comes before the bytes of the value.
func (r *Record) head(db int, key []byte, e *entry.Entry) {
	buf := appendBytes(append(r.buf, byte(e.Kind), byte(db)), key)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(e.Expiry))
	r.buf = binary.AppendUvarint(buf, uint64(len(e.Value)))
}

// Refer does what Put does for an entry with a long value, but refers to the value and does not
// copy it. It holds the value by [shared.Hold] with ledger l.
func (r *Record) Refer(db int, key []byte, e *entry.Entry, l shared.Ledger) {
	r.head(db, key, e)
	shared.Hold(e.Value, l)
	ref := shared.Held(e.Value, l)
	ref.At = len(r.buf)
	r.refs = append(r.refs, ref)
	r.long += len(e.Value)
}

// Remove records that the key of database db is removed.
func (r *Record) Remove(db int, key []byte) {
	r.buf = appendBytes(append(r.buf, opDelete, byte(db)), key)
}

// Patch records that the key of database db, which is of kind k, has the given expiry, and that
// some of its elements have changed as delta says. A nil delta means that only the expiry has
// changed.
func (r *Record) Patch(db int, key []byte, k entry.Kind, expiry limit.Instant, delta []byte) {
	r.buf = appendBytes(append(r.buf, opPatch, byte(db)), key)
	r.buf = binary.LittleEndian.AppendUint64(append(r.buf, byte(k)), uint64(expiry))
	r.buf = appendBytes(r.buf, delta)
}

// Flush records that all keys of database db are removed.
func (r *Record) Flush(db int) { r.buf = append(r.buf, opFlush, byte(db)) }

// appendBytes appends b, preceded by its length, to dst.
func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}
