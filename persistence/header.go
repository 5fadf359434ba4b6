package persistence

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
)

// Every file begins with a header of 68 bytes:
//
//	magic     8 bytes, the kind of file
//	version   uint32, 1
//	reserved  uint32, 0
//	id        uint64, random
//	clock     40 bytes, a clock record
//	checksum  uint32, CRC32C of all before
const (
	headerSize    = 68
	formatVersion = 1
)

// magic has the first bytes of all files of one kind.
type magic [8]byte

var (
	incrementMagic = magic{'C', 'E', 'L', 'L', 'L', 'O', 'G', '\n'}
	snapshotMagic  = magic{'C', 'E', 'L', 'L', 'S', 'N', 'A', 'P'}
)

// String returns the kind of file, for error texts.
func (m magic) String() string {
	if m == incrementMagic {
		return "increment"
	}
	return "snapshot"
}

// clockSize is the length of an encoded clock record: boot (16 bytes), boot time, derived instant
// and wall clock (8 bytes each).
const clockSize = 40

// appendClock appends the encoding of c to dst.
func appendClock(dst []byte, c *clock.Record) []byte {
	dst = append(dst, c.Boot[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(c.BootTime))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(c.Derived))
	return binary.LittleEndian.AppendUint64(dst, uint64(c.Wall))
}

// parseClock returns the clock record that is encoded in the first clockSize bytes of b.
func parseClock(b []byte) (c clock.Record) {
	copy(c.Boot[:], b)
	c.BootTime = int64(binary.LittleEndian.Uint64(b[16:]))
	c.Derived = limit.Instant(binary.LittleEndian.Uint64(b[24:]))
	c.Wall = int64(binary.LittleEndian.Uint64(b[32:]))
	return c
}

// header has the fields of the header of a file.
type header struct {
	id    uint64
	clock clock.Record
}

// append appends the encoded header of a file of kind m to dst.
func (h *header) append(dst []byte, m magic) []byte {
	from := len(dst)
	dst = append(dst, m[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, formatVersion)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = binary.LittleEndian.AppendUint64(dst, h.id)
	dst = appendClock(dst, &h.clock)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[from:], castagnoli))
}

// readHeader reads the header of f, a file of kind m that is called name. If id, which comes from
// the manifest, is not 0, the header must contain it. The error says what is wrong with the header.
func readHeader(f File, name string, m magic, id uint64) (header, error) {
	var b [headerSize]byte
	if n, err := f.ReadAt(b[:], 0); n < headerSize {
		return header{}, spoiled(name, 0, 0, fmt.Sprintf("the header of this %s is cut off (%v)", m, err))
	}
	if magic(b[:8]) != m {
		return header{}, spoiled(name, 0, 0, fmt.Sprintf("this is no %s of cellserver", m))
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != formatVersion {
		return header{}, fmt.Errorf("%s: format version %d is unknown to this program, which knows version %d: use the cellserver that wrote it, or its dump", name, v, formatVersion)
	}
	if crc32.Checksum(b[:headerSize-4], castagnoli) != binary.LittleEndian.Uint32(b[headerSize-4:]) {
		return header{}, spoiled(name, 0, 0, "the checksum of the header is wrong")
	}
	h := header{id: binary.LittleEndian.Uint64(b[16:]), clock: parseClock(b[24:])}
	if id != 0 && h.id != id {
		return header{}, spoiled(name, 0, 0, "this is another file than the manifest means")
	}
	return h, nil
}

// newID returns a random id for a new file. It is never 0, and no client can guess it.
func newID() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // Read does not fail: without a source of randomness the process ends
	return max(1, binary.LittleEndian.Uint64(b[:]))
}

// CorruptError is the error for a file with wrong content, if a crash alone cannot explain that.
type CorruptError struct {
	File   string // path of the corrupt file
	Offset int64  // offset in bytes of the damage
	Record uint64 // number of the damaged record or block, counted from 1; 0 if no record is meant
	What   string // a text that says what is wrong
	// Cuttable is true if the file is an increment that check-aof --fix can cut before the damage.
	Cuttable bool
}

// Error returns a text that says what is wrong, where, and what the operator can do about it.
func (e *CorruptError) Error() string {
	where := fmt.Sprintf("%s: offset %d", e.File, e.Offset)
	if e.Record > 0 {
		where += fmt.Sprintf(", record %d", e.Record)
	}
	advice := "save what `cellserver dump` can read of it"
	if e.Cuttable {
		advice = "look at it with `cellserver check-aof` (with --fix everything from this place on is given up)"
	}
	return where + ": " + e.What + ". Nothing was loaded and nothing changed. Restore the directory from a backup, or " + advice
}

// corrupt returns the error for an increment that is damaged at this place and can be cut there.
func corrupt(file string, offset int64, record uint64, what string) error {
	return &CorruptError{File: file, Offset: offset, Record: record, What: what, Cuttable: true}
}

// spoiled returns the error for a file that is damaged at this place and cannot be used at all
// because of that.
func spoiled(file string, offset int64, record uint64, what string) error {
	return &CorruptError{File: file, Offset: offset, Record: record, What: what}
}
