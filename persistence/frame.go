package persistence

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/cellserver/cellserver/shared"
)

// A record in an increment has this form:
//
//	length    uint32  of the payload
//	checksum  uint32  CRC32C of file id, sequence, length, payload; 0 without a file
//	payload           a type byte and what belongs to the type
//
// Numbers are little-endian. The sequence numbers the records of a file from 1. It is not stored,
// but is part of the checksum: so a missing, duplicated or moved record is noticed.
const frameHead = 8

// recordType is the type of a record, the first byte of its payload. The values never change their
// meaning.
type recordType byte

const (
	// typeEffects is a record with all effects of one command, as the keyspace encodes them.
	typeEffects recordType = 1
	// typeClock is a clock record: the readings of the server's clocks.
	typeClock recordType = 2
	// typeDurable is a durable-offset record. It has an offset: everything before the offset in
	// this file, and all increments before this file, were durable when the record was written.
	typeDurable recordType = 3
	// typeEnd is an end record. It has the form of a durable-offset record and is the last record
	// of a file.
	typeEnd recordType = 4
	// typeOrigin is an origin record: see [Origin].
	typeOrigin recordType = 128
	// typeWatermark is a watermark for replicas. It has an instant; no effect after the record is
	// earlier.
	typeWatermark recordType = 129
)

// durableMarker begins the body of durable-offset and end records. With the marker such a record
// can be found after a damaged record, where it is not known at which bytes records begin. The
// payload is:
//
//	type, marker (8 bytes), file id, offset, sequence of the record itself
var durableMarker = [8]byte{0xff, 'S', 'Y', 'N', 'C', 'E', 'D', '\n'}

// durableSize is the length of the payload of a durable-offset or end record.
const durableSize = 1 + 8 + 8 + 8 + 8

// maxRecord is the maximum size in bytes of a record, and of a block of a snapshot. If a record of
// effects is as large, the files of the log are given up, and the next base has the effects.
const maxRecord = 1 << 30

// castagnoli is the table for CRC32C.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// framer frames the records of one file: it writes their lengths and checksums.
type framer struct {
	id   uint64 // the id of the file
	seq  uint64 // the number of the next record
	seed uint32 // the checksum of the bytes of id, with which each checksum begins
	head [12]byte
	// unread is true for a log without a file. No reader checks the checksums then, so framer
	// computes none.
	unread bool
}

// newFramer returns a framer for a new file with that id.
func newFramer(id uint64) framer {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], id)
	return framer{id: id, seq: 1, seed: crc32.Checksum(b[:], castagnoli)}
}

// checksum returns the checksum of the next record, which has that payload.
func (f *framer) checksum(payload []byte) uint32 {
	return crc32.Update(f.start(len(payload)), castagnoli, payload)
}

// start returns the checksum of the fields that precede the payload in the checksum of the next
// record: the file id, the sequence, and n, the length of the payload.
func (f *framer) start(n int) uint32 {
	binary.LittleEndian.PutUint64(f.head[:], f.seq)
	binary.LittleEndian.PutUint32(f.head[8:], uint32(n))
	return crc32.Update(f.seed, castagnoli, f.head[:])
}

// begin appends the frame head and the type of a record to dst. It returns the result, out, and the
// offset at of the record in out. The caller appends the body and then calls end with both.
func (f *framer) begin(dst []byte, t recordType) (out []byte, at int) {
	at = len(dst)
	return append(dst, 0, 0, 0, 0, 0, 0, 0, 0, byte(t)), at
}

// end completes the record that begins at dst[at:] and returns dst. It advances the number of the
// next record.
func (f *framer) end(dst []byte, at int) []byte { return f.endWith(dst, at, nil) }

// endWith does what end does for a record with the long values refs. The values are not in dst but
// belong there, each at its offset At. Length and checksum include them.
func (f *framer) endWith(dst []byte, at int, refs []shared.Ref) []byte {
	from, n := at+frameHead, len(dst)-at-frameHead
	for i := range refs {
		n += len(refs[i].Bytes)
	}
	binary.LittleEndian.PutUint32(dst[at:], uint32(n))
	if f.unread {
		return dst
	}
	sum := f.start(n)
	for i := range refs {
		sum = crc32.Update(sum, castagnoli, dst[from:refs[i].At])
		sum = crc32.Update(sum, castagnoli, refs[i].Bytes)
		from = refs[i].At
	}
	binary.LittleEndian.PutUint32(dst[at+4:], crc32.Update(sum, castagnoli, dst[from:]))
	f.seq++
	return dst
}

// durableRecord appends to dst a record of type t, a durable-offset or end record, which says that
// everything before offset in the file is durable.
func (f *framer) durableRecord(dst []byte, t recordType, offset int64) []byte {
	dst, at := f.begin(dst, t)
	dst = append(dst, durableMarker[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, f.id)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(offset))
	dst = binary.LittleEndian.AppendUint64(dst, f.seq)
	return f.end(dst, at)
}

// durableOffset returns the offset in payload, the payload of a durable-offset or end record whose
// checksum is right. ok is false if the record has another length or marker, or is not of the file
// with that id.
func durableOffset(payload []byte, id uint64) (offset int64, ok bool) {
	if len(payload) != durableSize || [8]byte(payload[1:9]) != durableMarker ||
		binary.LittleEndian.Uint64(payload[9:]) != id {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(payload[17:])), true
}
