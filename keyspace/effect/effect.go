package effect

import (
	"encoding/binary"
	"errors"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
)

// An effect has the state of a key after one change, so that replaying it needs neither a clock nor
// an algorithm. An effect may be replayed over a newer state: once all later effects have been
// replayed too, the state is right. The formats are:
//
//	put     kind (1 to 63), database, key, expiry (8 bytes), value
//	delete  64, database, key
//	flush   65, database
//	patch   66, database, key, kind, expiry (8 bytes), delta
//
// Kind and database take a byte each. Key, value and delta are preceded by their length as an
// unsigned varint. The expiry is in nanoseconds, little-endian. 67 to 127 are reserved.
//
// A patch has the new state of the changed elements of a large value, which an earlier effect has
// put. A patch without a delta changes only the expiry.
const (
	opDelete = 64
	opFlush  = 65
	opPatch  = 66
)

// Patchable reports whether changes of keys of kind k may be recorded by patches. While files are
// loaded, an entry of such a kind is kept even if it has expired, because a later patch may extend
// its expiry.
func Patchable(k entry.Kind) bool {
	if k.IsWindow() {
		m := k.WindowMode()
		return m == slidingwindow.Log || m == slidingwindow.Buckets
	}
	return k.IsCollection() || k.IsLease() || k.Remembers() && k.IsLimiter()
}

var errEffect = errors.New("bytes are not an effect")

// Effect is a decoded effect on the database DB. If Flush is true, all keys of the database are
// removed, and Key and Entry are not set. If Patch is true, the value of Entry is a delta for the
// value of Key. Otherwise Entry is the new entry of Key, or the key is deleted if Entry is of kind
// [entry.None].
type Effect struct {
	DB    int
	Key   []byte
	Entry entry.Entry
	Flush bool
	Patch bool
}

// Next decodes the first effect of record and returns the bytes after it as rest. record may be any
// bytes; the error says that it does not begin with an effect. The slices of e and rest are parts
// of record.
func Next(record []byte) (e Effect, rest []byte, err error) {
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

// effectHead decodes the first effect of record up to its value. n is the length of the value, with
// which rest begins. A delete and a flush have no value.
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
	if op == 0 || entry.Kind(op) >= entry.Kinds || len(rest) < 8 || e.Patch && !Patchable(entry.Kind(op)) {
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

// cutBytes returns out, the bytes at the beginning of b that are preceded by their length, and the
// rest of b. ok is false if b is too short.
func cutBytes(b []byte) (out, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	end := size + int(n)
	return b[size:end:end], b[end:], true
}
