package persistence

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/limit"
)

// Sink receives the data that is loaded. Several goroutines may call the methods at a time, but the
// calls for one key come in order. An error ends the loading. [keyspace.Keyspace] implements it.
type Sink interface {
	// Restore stores an entry of the base. key and the value of e are valid until it returns.
	Restore(db int, key []byte, e entry.Entry) error
	// Apply applies an effect of the log. The slices of e are valid until it returns.
	Apply(e effect.Effect) error
	// Whole is called once everything has been loaded. It returns an error if the loaded state is
	// impossible.
	Whole() error
}

// Progress counts what has been read while a server loads its files, for display.
type Progress struct {
	Total, Done atomic.Int64 // bytes of all files, and bytes that were read
	Keys        atomic.Int64 // number of entries of the base that were read
	Records     atomic.Int64 // number of records of effects that were read from the increments
}

// errStopping is the error with which writing or loading ends early when the server stops.
var errStopping = errors.New("the server stops")

// foundBlock is a block that was read but not checked or decoded yet.
type foundBlock struct {
	payload []byte
	sum     uint32 // the checksum that the file has for the block
	seq     uint64 // number of the block in the file, counted from 1
	offset  int64  // offset of the block in the file, in bytes
}

// readSnapshot calls use for every entry of the snapshot p in the directory dir, until use returns
// an error or stop is set. Several goroutines call use at a time, as many as GOMAXPROCS. A snapshot
// is complete or corrupt, since it was durable before any manifest named it. The error says that
// the file is corrupt, that a read failed, or that the server stops.
func readSnapshot(fsys FS, dir string, p part, progress *Progress, stop *atomic.Bool, use func(db int, key []byte, e entry.Entry) error) error {
	path := filepath.Join(dir, p.name)
	f, err := fsys.Open(path)
	if err != nil {
		return fmt.Errorf("opening a file that the manifest lists: %w", err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	h, err := readHeader(f, path, snapshotMagic, p.id)
	if err != nil {
		return err
	}
	l := &snapshotLoader{path: path, f: f, size: size, id: h.id, progress: progress, stop: stop, use: use}
	return l.run()
}

// snapshotClock returns c, the clock record of the snapshot at path, whose id is id, and latest, an
// instant that is not earlier than anything in the snapshot. It reads only the header and the
// footer.
func snapshotClock(fsys FS, path string, id uint64) (c clock.Record, latest limit.Instant, err error) {
	f, err := fsys.Open(path)
	if err != nil {
		return c, 0, fmt.Errorf("opening a file that the manifest lists: %w", err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return c, 0, fmt.Errorf("reading %s: %w", path, err)
	}
	h, err := readHeader(f, path, snapshotMagic, id)
	if err != nil {
		return c, 0, err
	}
	at := size - frameHead - footerSize
	if at < headerSize {
		return c, 0, spoiled(path, size, 0, "the snapshot ends without its footer")
	}
	var b [frameHead + footerSize]byte
	if n, err := f.ReadAt(b[:], at); n < len(b) {
		return c, 0, fmt.Errorf("reading %s: %w", path, err)
	}
	blocks := binary.LittleEndian.Uint64(b[frameHead+9:])
	if b[frameHead] != blockFooter || blockSum(h.id, blocks+1, b[frameHead:]) != binary.LittleEndian.Uint32(b[4:]) {
		return c, 0, spoiled(path, at, 0, "there is no footer where it should be")
	}
	return h.clock, limit.Instant(binary.LittleEndian.Uint64(b[frameHead+17:])), nil
}

// snapshotLoader reads the blocks of a snapshot in one goroutine and decodes them in others.
type snapshotLoader struct {
	path     string
	f        File
	size     int64
	id       uint64
	progress *Progress
	stop     *atomic.Bool // set to end the loading early
	use      func(db int, key []byte, e entry.Entry) error

	failed  atomic.Pointer[error]
	keys    atomic.Uint64 // number of entries that were decoded
	buffers sync.Pool     // unused buffers of type []byte for payloads
}

// run loads the whole snapshot. It returns the first error of reading or decoding a block, and an
// error if the footer does not have the number of the entries.
func (l *snapshotLoader) run() error {
	work := make(chan foundBlock, 2*runtime.GOMAXPROCS(0))
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for b := range work {
				l.decode(b)
			}
		})
	}
	footer, err := l.read(work)
	close(work)
	workers.Wait()
	if err == nil {
		if why := l.failed.Load(); why != nil {
			return *why
		}
		if footer != l.keys.Load() {
			return spoiled(l.path, l.size, 0, fmt.Sprintf("the footer counts %d keys and there are %d", footer, l.keys.Load()))
		}
	}
	return err
}

// read passes the blocks before the footer to work, checks the footer, and returns the number of
// keys in the footer. It returns 0 early if the decoding of a block has failed, and errStopping if
// l.stop is set.
func (l *snapshotLoader) read(work chan<- foundBlock) (keys uint64, err error) {
	offset := int64(headerSize)
	for seq := uint64(1); l.failed.Load() == nil; seq++ {
		if l.stop.Load() {
			return 0, errStopping
		}
		b, err := l.block(offset, seq)
		if err != nil {
			return 0, err
		}
		if b.payload[0] != blockFooter {
			work <- b
			offset += frameHead + int64(len(b.payload))
			l.progress.Done.Add(frameHead + int64(len(b.payload)))
			continue
		}
		end := offset + frameHead + int64(len(b.payload))
		switch {
		case blockSum(l.id, seq, b.payload) != b.sum:
			return 0, spoiled(l.path, offset, seq, "the checksum of the block is wrong")
		case len(b.payload) != footerSize || binary.LittleEndian.Uint64(b.payload[9:]) != seq-1:
			return 0, spoiled(l.path, offset, seq, "the footer counts other blocks than there are")
		case end != l.size:
			return 0, spoiled(l.path, end, seq, "there is something behind the footer")
		}
		return binary.LittleEndian.Uint64(b.payload[1:]), nil
	}
	return 0, nil
}

// block reads and returns the block at offset, whose number is seq. It neither checks nor decodes
// the payload.
func (l *snapshotLoader) block(offset int64, seq uint64) (b foundBlock, err error) {
	var head [frameHead]byte
	if l.size-offset < frameHead+1 {
		return b, spoiled(l.path, offset, seq, "the snapshot ends without its footer")
	}
	if n, err := l.f.ReadAt(head[:], offset); n < frameHead {
		return b, fmt.Errorf("reading %s: %w", l.path, err)
	}
	n := int64(binary.LittleEndian.Uint32(head[:]))
	if n == 0 || n > maxRecord || n > l.size-offset-frameHead {
		return b, spoiled(l.path, offset, seq, fmt.Sprintf("a block of %d bytes, which cannot be", n))
	}
	payload, _ := l.buffers.Get().([]byte)
	if int64(cap(payload)) < n {
		payload = make([]byte, n)
	}
	payload = payload[:n]
	if got, err := l.f.ReadAt(payload, offset+frameHead); int64(got) < n {
		return b, fmt.Errorf("reading %s: %w", l.path, err)
	}
	return foundBlock{payload: payload, sum: binary.LittleEndian.Uint32(head[4:]), seq: seq, offset: offset}, nil
}

// decode checks the block b and passes its entries to use. It stores the first error of all blocks
// in l.failed. After an error it ignores further blocks.
func (l *snapshotLoader) decode(b foundBlock) {
	if l.failed.Load() != nil {
		return
	}
	var err error
	switch {
	case blockSum(l.id, b.seq, b.payload) != b.sum:
		err = errors.New("the checksum of the block is wrong")
	default:
		var keys int
		keys, err = DecodeBlock(b.payload, l.use)
		l.keys.Add(uint64(keys))
		l.progress.Keys.Add(int64(keys))
	}
	if err != nil {
		err = spoiled(l.path, b.offset, b.seq, err.Error())
		l.failed.CompareAndSwap(nil, &err)
	}
	l.buffers.Put(b.payload) //nolint:staticcheck // a slice header for each 64 KiB is fine
}
