package effect

import (
	"encoding/binary"
	"errors"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
)

// An effect is the state that one change left, so that replaying it needs neither a clock nor an
// algorithm. Replaying it over a newer state does no harm once all later effects have been replayed
// too:
//
//	put     kind (1 to 63), database, key, expiry (8 bytes), value
//	delete  64, database, key
//	flush   65, database
//	patch   66, database, key, kind, expiry (8 bytes), delta
//
// Kind and database take a byte. Key, value and delta are preceded by their length as an unsigned
// varint. The expiry is in nanoseconds, little-endian. 67 to 127 are reserved.
//
// A patch says how the changed elements of a large value are now; without a delta it only changes
// the expiry. An earlier effect has put the value.
const (
	opDelete = 64
	opFlush  = 65
	opPatch  = 66
)

// Patchable reports whether keys of kind k may be recorded by patches. While loading, an entry of
// such a kind is kept even if it has expired: a later patch may prolong its life.
func Patchable(k entry.Kind) bool {
	if k.IsWindow() {
		m := k.WindowMode()
		return m == slidingwindow.Log || m == slidingwindow.Buckets
	}
	return k.IsCollection() || k.IsLease()
}

var errEffect = errors.New("bytes are not an effect")

// Effect is a decoded effect: a put with its entry; a delete, where Entry is of kind [entry.None];
// a patch, where the entry's value is a delta; or a flush of the whole database.
type Effect struct {
	DB    int
	Key   []byte
	Entry entry.Entry
	Flush bool
	Patch bool
}

// Next decodes the first effect of record, which may be any bytes. The slices of e and rest are
// parts of record.
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

// effectHead decodes an effect up to its value of n bytes, with which rest begins. An effect of
// kind None has no value.
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

func cutBytes(b []byte) (out, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	end := size + int(n)
	return b[size:end:end], b[end:], true
}
