package persistence

import (
	"encoding/binary"
	"fmt"

	"github.com/cellserver/cellserver/limit"
)

// blockWriter collects the entries of a snapshot and writes them to a file in blocks.
type blockWriter struct {
	gathered
	f      File
	framer framer
	ready  []byte // complete blocks that are not written yet
	keys   uint64 // number of entries that were encoded
	bytes  int64  // number of bytes that were written
	synced int64  // offset in bytes up to which the file is durable
}

// newBlockWriter returns a blockWriter for f and writes the header h.
func newBlockWriter(f File, h *header) (*blockWriter, error) {
	w := &blockWriter{f: f, framer: newFramer(h.id)}
	w.ready = h.append(nil, snapshotMagic)
	return w, w.flush(0)
}

// pause encodes the entries of each database that has more than least bytes of entries, and writes
// the blocks if they are large enough. With least 0 it writes everything.
func (w *blockWriter) pause(least int) error {
	for db, b := range w.gathered {
		if b != nil && b.size > least && len(b.entries) > 0 {
			if err := w.encode(db, b); err != nil {
				return err
			}
		}
	}
	return w.flush(min(least, 4*blockSize))
}

// encode encodes b, the entries of database db, as one block, or as several if the values are
// large, and empties b.
func (w *blockWriter) encode(db int, b *block) (err error) {
	for b.done < len(b.entries) {
		out, at := w.framer.begin(w.ready, blockEntries)
		if out, err = b.next(out, db); err != nil {
			return err
		}
		w.ready = w.framer.end(out, at)
	}
	w.keys += uint64(len(b.entries))
	b.reset()
	return nil
}

// syncEvery is the number of bytes after which a growing snapshot is synced. A single sync at the
// end would delay the fsyncs of the log.
const syncEvery = 4 << 20

// flush writes the blocks that are ready if they have more than least bytes, and syncs the file
// after every syncEvery bytes.
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

// finish writes the rest of the entries and the footer, and syncs the file. latest is an instant
// that is not earlier than anything in the snapshot.
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

// blockSum returns the checksum of the block with the number seq and that payload, in the file with
// that id.
func blockSum(id, seq uint64, payload []byte) uint32 {
	f := newFramer(id)
	f.seq = seq
	return f.checksum(payload)
}

// writeAll writes b to f. A short write is an error.
func writeAll(f File, b []byte) error {
	n, err := f.Write(b)
	if err == nil && n < len(b) {
		err = fmt.Errorf("only %d of %d bytes were written", n, len(b))
	}
	return err
}
