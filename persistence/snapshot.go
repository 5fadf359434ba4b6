package persistence

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/cellserver/cellserver/keyspace/entry"
	"github.com/cellserver/cellserver/limit"
)

// A snapshot is a header and blocks:
//
//	length    uint32  of the payload
//	checksum  uint32  CRC32C of file id, block number from 1, length, payload
//	payload           a type byte, then entries or the footer
//
// A block of entries holds its database, the earliest expiry in it, and entries:
//
//	kind (6 bits), 64 if it never expires, 128 if its value is empty
//	length of the key that it shares with the key before, length of the rest, rest
//	expiry after the earliest      unless 64
//	length of the value, value     unless 128
//
// Lengths and expiries are unsigned varints. The footer is the number of entries, of
// blocks before it, and an instant that nothing in it was later than; nothing
// follows.
const (
	blockEntries = 1
	blockFooter  = 2

	// footerSize is the length of the footer's payload.
	footerSize = 1 + 8 + 8 + 8

	flagForever = 64
	flagNoValue = 128
	kindMask    = 63
)

// blockSize is about how large blocks are: small enough that several processors
// have some to load, large enough that nothing else matters.
const blockSize = 64 << 10

// blockWriter gathers entries and writes blocks of them.
type blockWriter struct {
	f      File
	framer framer
	blocks []*block // by database; nil until needed
	ready  []byte   // whole blocks that are not written yet
	keys   uint64
	bytes  int64
	synced int64 // up to where it is known to be durable
}

// block is entries of one database that are not in a block yet.
type block struct {
	keys    []byte // keys, values and what else there is
	entries []blockEntry
	size    int
}

type blockEntry struct {
	key, value int // lengths
	kind       entry.Kind
	expiry     limit.Instant
}

func newBlockWriter(f File, h *header) (*blockWriter, error) {
	w := &blockWriter{f: f, framer: newFramer(h.id)}
	w.ready = h.append(nil, snapshotMagic)
	return w, w.flush(0)
}

// add takes an entry. It only copies: it is called with a lock held.
func (w *blockWriter) add(db int, key []byte, e entry.Entry) {
	for len(w.blocks) <= db {
		w.blocks = append(w.blocks, nil)
	}
	b := w.blocks[db]
	if b == nil {
		b = &block{}
		w.blocks[db] = b
	}
	b.keys = append(append(b.keys, key...), e.Value...)
	b.entries = append(b.entries, blockEntry{len(key), len(e.Value), e.Kind, e.Expiry})
	b.size += len(key) + len(e.Value) + 12
}

// pause writes what has grown to the size of a block; all of it with least 0.
func (w *blockWriter) pause(least int) error {
	for db, b := range w.blocks {
		if b != nil && b.size > least && len(b.entries) > 0 {
			if err := w.encode(db, b); err != nil {
				return err
			}
		}
	}
	return w.flush(min(least, 4*blockSize))
}

// encode makes blocks of b: one, unless values are large.
func (w *blockWriter) encode(db int, b *block) error {
	earliest := limit.Instant(math.MaxInt64)
	for i := range b.entries {
		earliest = min(earliest, b.entries[i].expiry)
	}
	begin := func(ready []byte) (out []byte, at int) {
		out, at = w.framer.begin(ready, blockEntries)
		return binary.LittleEndian.AppendUint64(append(out, byte(db)), uint64(earliest)), at
	}
	out, at := begin(w.ready)
	var before []byte
	rest := b.keys
	for i := range b.entries {
		e := &b.entries[i]
		key, value := rest[:e.key], rest[e.key:e.key+e.value]
		rest = rest[e.key+e.value:]
		if len(out)-at > 4*blockSize {
			out, at = begin(w.framer.end(out, at))
			before = nil
		}
		out = appendEntry(out, e, key, value, before, earliest)
		before = key
		if len(out)-at > maxRecord {
			return fmt.Errorf("the value of a key is %d bytes, more than a snapshot can hold", len(value))
		}
	}
	w.keys += uint64(len(b.entries))
	w.ready = w.framer.end(out, at)
	*b = block{keys: b.keys[:0], entries: b.entries[:0]}
	return nil
}

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

// syncEvery is after how many bytes a snapshot is synced while it grows, so that its
// end is not a burst in whose wake the log's fsyncs wait.
const syncEvery = 4 << 20

// flush writes the blocks that are ready if they are more than least bytes.
func (w *blockWriter) flush(least int) error {
	if len(w.ready) <= least {
		return nil
	}
	err := writeAll(w.f, w.ready)
	w.bytes += int64(len(w.ready))
	w.ready = w.ready[:0]
	if err == nil && w.bytes-w.synced >= syncEvery {
		w.synced = w.bytes
		err = w.f.Sync()
	}
	return err
}

// finish writes the rest and the footer, and syncs. Nothing in it was later than
// latest.
func (w *blockWriter) finish(latest limit.Instant) error {
	if err := w.pause(0); err != nil {
		return err
	}
	out, at := w.framer.begin(w.ready, blockFooter)
	out = binary.LittleEndian.AppendUint64(out, w.keys)
	out = binary.LittleEndian.AppendUint64(out, w.framer.seq-1)
	out = binary.LittleEndian.AppendUint64(out, uint64(latest))
	w.ready = w.framer.end(out, at)
	if err := w.flush(0); err != nil {
		return err
	}
	return w.f.Sync()
}

// errEntry is what the bytes of a block with a good checksum can only be if they
// were written wrongly.
var errEntry = errors.New("bytes are not entries")

// decodeBlock calls f for the entries of a payload, which may be any bytes behind
// its type.
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

func cutCounted(b []byte) (out, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	end := size + int(n)
	return b[size:end:end], b[end:], true
}

// blockSum is the checksum of block number seq of the file with that id.
func blockSum(id, seq uint64, payload []byte) uint32 {
	f := newFramer(id)
	f.seq = seq
	return f.checksum(payload)
}

// writeAll is a Write that knows that a short one is a failure.
func writeAll(f File, b []byte) error {
	n, err := f.Write(b)
	if err == nil && n < len(b) {
		err = fmt.Errorf("only %d of %d bytes were written", n, len(b))
	}
	return err
}
