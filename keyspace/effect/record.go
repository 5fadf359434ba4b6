package effect

import (
	"encoding/binary"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/shared"
)

// Record gathers the effects of one command, or of all that is done under the same locks.
type Record struct {
	buf []byte
	// refs are long values, which are not copied into buf: they are handed over beside it. long is how many
	// bytes they have.
	refs []shared.Ref
	long int
	// condensed is how much of each there was after it was last condensed, 0 before.
	condensed struct{ buf, long int }
}

// Empty reports whether there is no effect.
func (r *Record) Empty() bool { return len(r.buf) == 0 }

// Parts are the bytes of the record and the long values that belong between them, each
// where its At says.
func (r *Record) Parts() (buf []byte, refs []shared.Ref) { return r.buf, r.refs }

// Size is how many bytes the record has.
func (r *Record) Size() int { return len(r.buf) + r.long }

// maxKept is the largest buffer that a record keeps for the next one.
const maxKept = 64 << 10

// Reset forgets what was recorded and handed over.
func (r *Record) Reset() {
	if r.buf = r.buf[:0]; cap(r.buf) > maxKept {
		r.buf = nil
	}
	if r.refs != nil {
		r.refs, r.long = nil, 0
	}
	r.condensed.buf, r.condensed.long = 0, 0
}

// Put records that key holds e from now on.
func (r *Record) Put(db int, key []byte, e *entry.Entry) {
	r.head(db, key, e)
	r.buf = append(r.buf, e.Value...)
}

// head is what Put records before the bytes of the value.
func (r *Record) head(db int, key []byte, e *entry.Entry) {
	buf := appendBytes(append(r.buf, byte(e.Kind), byte(db)), key)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(e.Expiry))
	r.buf = binary.AppendUvarint(buf, uint64(len(e.Value)))
}

// Refer is Put for e whose long value is the stored one.
func (r *Record) Refer(db int, key []byte, e *entry.Entry, l shared.Ledger) {
	r.head(db, key, e)
	shared.Hold(e.Value, l)
	ref := shared.Held(e.Value, l)
	ref.At = len(r.buf)
	r.refs = append(r.refs, ref)
	r.long += len(e.Value)
}

// Remove records that key is gone.
func (r *Record) Remove(db int, key []byte) {
	r.buf = appendBytes(append(r.buf, opDelete, byte(db)), key)
}

// Patch records what became of some elements of key, or only of its expiry: delta is nil then.
func (r *Record) Patch(db int, key []byte, k entry.Kind, expiry limit.Instant, delta []byte) {
	r.buf = appendBytes(append(r.buf, opPatch, byte(db)), key)
	r.buf = binary.LittleEndian.AppendUint64(append(r.buf, byte(k)), uint64(expiry))
	r.buf = appendBytes(r.buf, delta)
}

// Flush records that a database is empty.
func (r *Record) Flush(db int) { r.buf = append(r.buf, opFlush, byte(db)) }

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}
