package effect

import (
	"encoding/binary"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/shared"
)

// Record collects the effects of one command, or of all commands under the same locks.
type Record struct {
	buf []byte
	// refs are long values. They are not copied into buf but handed over beside it. long is their
	// number of bytes.
	refs []shared.Ref
	long int
	// condensed has the lengths of buf and long after the last condensing, 0 before.
	condensed struct{ buf, long int }
}

// Empty reports whether there is no effect.
func (r *Record) Empty() bool { return len(r.buf) == 0 }

// Parts returns the bytes of the record and the long values that belong between them, each at its
// At.
func (r *Record) Parts() (buf []byte, refs []shared.Ref) { return r.buf, r.refs }

// Size returns the number of bytes of the record, including long values.
func (r *Record) Size() int { return len(r.buf) + r.long }

// maxKept is the capacity of the largest buffer that is kept for the next record.
const maxKept = 64 << 10

// Reset empties the record after its parts have been handed over.
func (r *Record) Reset() {
	if r.buf = r.buf[:0]; cap(r.buf) > maxKept {
		r.buf = nil
	}
	if r.refs != nil {
		r.refs, r.long = nil, 0
	}
	r.condensed.buf, r.condensed.long = 0, 0
}

// Put records that key now holds e.
func (r *Record) Put(db int, key []byte, e *entry.Entry) {
	r.head(db, key, e)
	r.buf = append(r.buf, e.Value...)
}

// head records the part of a put before the bytes of the value.
func (r *Record) head(db int, key []byte, e *entry.Entry) {
	buf := appendBytes(append(r.buf, byte(e.Kind), byte(db)), key)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(e.Expiry))
	r.buf = binary.AppendUvarint(buf, uint64(len(e.Value)))
}

// Refer is Put for an entry with a long value, which it does not copy but refers to.
func (r *Record) Refer(db int, key []byte, e *entry.Entry, l shared.Ledger) {
	r.head(db, key, e)
	shared.Hold(e.Value, l)
	ref := shared.Held(e.Value, l)
	ref.At = len(r.buf)
	r.refs = append(r.refs, ref)
	r.long += len(e.Value)
}

// Remove records that key is removed.
func (r *Record) Remove(db int, key []byte) {
	r.buf = appendBytes(append(r.buf, opDelete, byte(db)), key)
}

// Patch records the change of some elements of key, or only of its expiry if delta is nil.
func (r *Record) Patch(db int, key []byte, k entry.Kind, expiry limit.Instant, delta []byte) {
	r.buf = appendBytes(append(r.buf, opPatch, byte(db)), key)
	r.buf = binary.LittleEndian.AppendUint64(append(r.buf, byte(k)), uint64(expiry))
	r.buf = appendBytes(r.buf, delta)
}

// Flush records that all keys of a database are removed.
func (r *Record) Flush(db int) { r.buf = append(r.buf, opFlush, byte(db)) }

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}
