package keyspace

import (
	"encoding/binary"
	"errors"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/keyspace/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// An effect is what one change left behind, so that replaying needs neither a
// clock nor an algorithm, and replaying it over a state that is newer already does
// no harm once all that follows has been replayed too:
//
//	put     kind (1 to 63), database, key, expiry (8 bytes), value
//	delete  64, database, key
//	flush   65, database
//	patch   66, database, key, kind, expiry (8 bytes), delta
//
// Kind and database take a byte, key, value and delta follow their length as an
// unsigned varint, the expiry is little-endian nanoseconds. 67 to 127 are reserved.
//
// A patch says what became of the elements of a large value that were touched; with
// no delta it only changes the expiry. What it belongs to has been put before.
const (
	opDelete = 64
	opFlush  = 65
	opPatch  = 66
)

// Effect is a decoded effect: a put with its entry; a delete, where Entry is of
// kind [entry.None]; a patch, where the entry's value is a delta; or a flush of the whole
// database.
type Effect struct {
	DB    int
	Key   []byte
	Entry entry.Entry
	Flush bool
	Patch bool
}

var errEffect = errors.New("bytes are not an effect")

// recorder gathers the effects of one command, or of all that a view does while it
// holds keys.
type recorder struct {
	buf []byte
	// refs are long values, which are not copied into buf: see [Journal]. long is how many
	// bytes they have.
	refs []shared.Ref
	long int
	// condensed is how much of each there was after it was last condensed, 0 before.
	condensed struct{ buf, long int }
	flat      []byte // scratch for the bytes of a tree
}

// size is how many bytes the record has.
func (r *recorder) size() int { return len(r.buf) + r.long }

// reset forgets what was recorded and handed over.
func (r *recorder) reset() {
	if r.buf = r.buf[:0]; cap(r.buf) > maxScratch {
		r.buf = nil
	}
	if r.refs != nil {
		r.refs, r.long = nil, 0
	}
	r.condensed.buf, r.condensed.long = 0, 0
}

func (r *recorder) put(db int, key []byte, e *entry.Entry) {
	r.head(db, key, e)
	r.buf = append(r.buf, e.Value...)
}

// head is what put records before the bytes of the value.
func (r *recorder) head(db int, key []byte, e *entry.Entry) {
	r.buf = append(r.buf, byte(e.Kind), byte(db))
	r.buf = appendBytes(r.buf, key)
	r.buf = binary.LittleEndian.AppendUint64(r.buf, uint64(e.Expiry))
	r.buf = binary.AppendUvarint(r.buf, uint64(len(e.Value)))
}

// refer is put for e whose long value is the stored one.
func (r *recorder) refer(db int, key []byte, e *entry.Entry, l shared.Ledger) {
	r.head(db, key, e)
	shared.Hold(e.Value, l)
	ref := shared.Held(e.Value, l)
	ref.At = len(r.buf)
	r.refs = append(r.refs, ref)
	r.long += len(e.Value)
}

func (r *recorder) remove(db int, key []byte) {
	r.buf = appendBytes(append(r.buf, opDelete, byte(db)), key)
}

func (r *recorder) patch(db int, key []byte, k entry.Kind, expiry limit.Instant, delta []byte) {
	r.buf = appendBytes(append(r.buf, opPatch, byte(db)), key)
	r.buf = binary.LittleEndian.AppendUint64(append(r.buf, byte(k)), uint64(expiry))
	r.buf = appendBytes(r.buf, delta)
}

func (r *recorder) flush(db int) { r.buf = append(r.buf, opFlush, byte(db)) }

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// NextEffect decodes the first effect of record, which may be any bytes. What it
// returns lies in record.
func NextEffect(record []byte) (e Effect, rest []byte, err error) {
	e, n, rest, err := effectHead(record)
	switch {
	case err != nil || e.Entry.Kind == entry.None:
		return e, rest, err
	case n > uint64(len(rest)):
		return e, nil, errEffect
	}
	e.Entry.Value = rest[:n:n]
	return e, rest[n:], nil
}

// effectHead reads an effect up to the n bytes of its value, which rest begins with. One
// whose Kind is None has no value.
func effectHead(record []byte) (e Effect, n uint64, rest []byte, err error) {
	if len(record) < 2 {
		return e, 0, nil, errEffect
	}
	op := record[0]
	e.DB, rest = int(record[1]), record[2:]
	if op == opFlush {
		e.Flush = true
		return e, 0, rest, nil
	}
	var ok bool
	if e.Key, rest, ok = cutBytes(rest); !ok || len(e.Key) > entry.MaxKeyLength {
		return e, 0, nil, errEffect
	}
	if op == opDelete {
		return e, 0, rest, nil
	}
	if e.Patch = op == opPatch; e.Patch && len(rest) > 0 {
		op, rest = rest[0], rest[1:]
	}
	if op == 0 || entry.Kind(op) >= entry.Kinds || len(rest) < 8 || e.Patch && !patchable(entry.Kind(op)) {
		return e, 0, nil, errEffect
	}
	e.Entry.Kind = entry.Kind(op)
	e.Entry.Expiry = limit.Instant(binary.LittleEndian.Uint64(rest))
	n, size := binary.Uvarint(rest[8:])
	if size <= 0 {
		return e, 0, nil, errEffect
	}
	return e, n, rest[8+size:], nil
}

func cutBytes(b []byte) (out, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	end := size + int(n)
	return b[size:end:end], b[end:], true
}

// CheckEntry reports whether e, which may come from a file, is something that a
// key can hold.
func CheckEntry(e entry.Entry) error {
	switch {
	case e.Kind == entry.String:
		return nil
	case e.Kind.IsCollection():
		return checkFlat(e.Kind, e.Value)
	case e.Kind == entry.Cell:
		if len(e.Value) == 0 {
			return nil
		}
		return gcra.Check(e.Value)
	case e.Kind.IsWindow():
		return slidingwindow.Check(e.Kind.WindowMode(), e.Value)
	case e.Kind.IsBucket():
		return tokenbucket.Check(e.Kind.BucketMode(), e.Value)
	case e.Kind.IsLease():
		return concurrency.Check(e.Kind.LeaseMode(), e.Value)
	}
	return errEffect
}
