package persistence

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
)

// A snapshot consists of a header and blocks of this form:
//
//	length    uint32  of the payload
//	checksum  uint32  CRC32C of file id, block number from 1, length, payload
//	payload           a type byte, then entries or the footer
//
// A block of entries has the number of a database (1 byte), an instant that is not later than any
// expiry in the block (8 bytes), and entries:
//
//	kind (6 bits), 64 if it never expires, 128 if its value is empty
//	length of the prefix that the key shares with the key before, length of the rest, rest
//	expiry minus that instant      unless 64
//	length of the value, value     unless 128
//
// Lengths and expiries in an entry are unsigned varints. The footer has the number of entries, the
// number of blocks before the footer, and an instant that is not earlier than anything in the
// snapshot. Nothing follows the footer.
const (
	blockEntries = 1
	blockFooter  = 2

	// footerSize is the number of bytes of the footer's payload.
	footerSize = 1 + 8 + 8 + 8

	flagForever = 64
	flagNoValue = 128
	kindMask    = 63
)

// blockSize is the approximate size of a block in bytes. It is small enough that several processors
// have blocks to load, and large enough that the cost per block does not matter.
const blockSize = 64 << 10

// gathered has, for each database, the entries that are not in an encoded block yet; nil for a
// database that has had none.
type gathered []*block

// block has entries of one database that are not in an encoded block yet.
type block struct {
	keys    []byte // the key and the value of each entry, one after another
	entries []blockEntry
	size    int // approximate size in bytes of the entries when they are encoded
	// earliest is the earliest expiry of the entries.
	earliest limit.Instant
	// done is the number of entries that next has encoded, and from is the end of their bytes in
	// keys.
	done, from int
}

// blockEntry describes an entry of a block whose bytes are in block.keys.
type blockEntry struct {
	key, value int // lengths of the key and the value in bytes
	kind       entry.Kind
	expiry     limit.Instant
}

// add adds a copy of the entry e of key to the block of database db. It encodes nothing, since it
// is called with a shard locked and must be quick.
func (g *gathered) add(db int, key []byte, e entry.Entry) {
	for len(*g) <= db {
		*g = append(*g, nil)
	}
	b := (*g)[db]
	if b == nil {
		b = &block{}
		b.reset()
		(*g)[db] = b
	}
	b.keys = append(append(b.keys, key...), e.Value...)
	b.entries = append(b.entries, blockEntry{len(key), len(e.Value), e.Kind, e.Expiry})
	b.size += len(key) + len(e.Value) + 12
	b.earliest = min(b.earliest, e.Expiry)
}

// reset empties b. The memory is kept for the next entries.
func (b *block) reset() {
	*b = block{keys: b.keys[:0], entries: b.entries[:0], earliest: limit.MaxInstant}
}

// next appends to out the payload of a block of database db after the type byte. The block has the
// next entries that were not encoded yet, until it exceeds 256 KiB. next returns an error if a key
// and its value are too large for a block.
func (b *block) next(out []byte, db int) ([]byte, error) {
	at := len(out)
	out = binary.LittleEndian.AppendUint64(append(out, byte(db)), uint64(b.earliest))
	var before []byte
	for b.done < len(b.entries) && len(out)-at <= 4*blockSize {
		e := &b.entries[b.done]
		key, value := b.keys[b.from:b.from+e.key], b.keys[b.from+e.key:b.from+e.key+e.value]
		if len(out)-at+e.key+e.value > maxRecord-maxEntryHead {
			if before != nil {
				break // the entry did not fit, but may fit into a block of its own
			}
			return out, fmt.Errorf("the value of a key is %d bytes, more than a snapshot can hold", len(value))
		}
		out = appendEntry(out, e, key, value, before, b.earliest)
		before = key
		b.done++
		b.from += e.key + e.value
	}
	return out, nil
}

// maxEntryHead is more than the number of bytes of any encoded entry without its key and value.
const maxEntryHead = 64

// appendEntry appends the encoding of e to out. key and value belong to e, before is the key of the
// entry before, or nil, and earliest is the instant at the beginning of the block.
func appendEntry(out []byte, e *blockEntry, key, value, before []byte, earliest limit.Instant) []byte {
	kind := byte(e.kind)
	if e.expiry == entry.NoExpiry {
		kind |= flagForever
	}
	if len(value) == 0 {
		kind |= flagNoValue
	}
	shared := 0
	for shared < len(key) && shared < len(before) && key[shared] == before[shared] {
		shared++
	}
	out = binary.AppendUvarint(append(out, kind), uint64(shared))
	out = append(binary.AppendUvarint(out, uint64(len(key)-shared)), key[shared:]...)
	if kind&flagForever == 0 {
		out = binary.AppendUvarint(out, uint64(e.expiry)-uint64(earliest))
	}
	if len(value) > 0 {
		out = append(binary.AppendUvarint(out, uint64(len(value))), value...)
	}
	return out
}

// errEntry is the error for a block whose payload is not a sequence of entries.
var errEntry = errors.New("bytes are not entries")

// decodeBlock calls f for the entries of a block of entries, until f returns an error. payload is
// the block's payload after the type byte, and may be any bytes. key and the value of e are valid
// until f returns. If the bytes are no entries, the error is errEntry.
func decodeBlock(payload []byte, f func(db int, key []byte, e entry.Entry) error) error {
	if len(payload) < 9 {
		return errEntry
	}
	db, earliest := int(payload[0]), binary.LittleEndian.Uint64(payload[1:])
	var key []byte
	for rest := payload[9:]; len(rest) > 0; {
		kind := rest[0]
		shared, n := binary.Uvarint(rest[1:])
		if n <= 0 || shared > uint64(len(key)) {
			return errEntry
		}
		suffix, after, ok := cutCounted(rest[1+n:])
		if !ok {
			return errEntry
		}
		key = append(key[:shared], suffix...)
		e := entry.Entry{Kind: entry.Kind(kind & kindMask), Expiry: entry.NoExpiry}
		if kind&flagForever == 0 {
			later, n := binary.Uvarint(after)
			if n <= 0 {
				return errEntry
			}
			e.Expiry, after = limit.Instant(earliest+later), after[n:]
		}
		if kind&flagNoValue == 0 {
			if e.Value, after, ok = cutCounted(after); !ok || len(e.Value) == 0 {
				return errEntry
			}
		}
		if err := f(db, key, e); err != nil {
			return err
		}
		rest = after
	}
	return nil
}

// cutCounted splits b, which begins with a length and that many bytes. out has these bytes, and
// rest has the bytes after them. ok is false if b is too short.
func cutCounted(b []byte) (out, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	end := size + int(n)
	return b[size:end:end], b[end:], true
}
