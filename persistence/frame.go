package persistence

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/cellserver/cellserver/shared"
)

// A record in an increment:
//
//	length    uint32  of the payload
//	checksum  uint32  CRC32C of file id, sequence, length, payload; 0 without a file
//	payload           a type byte and what belongs to the type
//
// Numbers are little-endian. The sequence counts the records of a file from 1 and is not stored: a
// missing, duplicated or moved record fails its checksum.
const frameHead = 8

// recordType is the first byte of a payload. Its values never change meaning.
type recordType byte

const (
	// typeEffects has all effects of one command, as the keyspace encodes them.
	typeEffects recordType = 1
	// typeClock is a clock record.
	typeClock recordType = 2
	// typeDurable is a durable-offset record: everything before an offset in this file, and
	// all increments before it, were durable when the record was written.
	typeDurable recordType = 3
	// typeEnd is a durable-offset record for everything before it. It ends a file.
	typeEnd recordType = 4
	// typeOrigin is an origin record: see [Origin].
	typeOrigin recordType = 128
	// typeWatermark has an instant for replicas: no effect after the record is earlier.
	typeWatermark recordType = 129
)

// durableMarker begins the body of durable-offset and end records. By it such a record can be found
// after damage, when the beginnings of records are unknown:
//
//	type, marker (8 bytes), file id, offset, sequence of the record itself
var durableMarker = [8]byte{0xff, 'S', 'Y', 'N', 'C', 'E', 'D', '\n'}

const durableSize = 1 + 8 + 8 + 8 + 8

// maxRecord is the maximum size of a record, and of a block of a snapshot. A transaction stays far
// below, because the keyspace refuses commands that would exceed it. The log is given up for any
// other record of that size; a new base then has its effects.
const maxRecord = 1 << 30

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// framer checksums the records of one file.
type framer struct {
	id   uint64
	seq  uint64 // of the next record
	seed uint32 // checksum of the bytes of id
	head [12]byte
	// unread says that there is no file: no reader checks a checksum, so none is computed.
	unread bool
}

func newFramer(id uint64) framer {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], id)
	return framer{id: id, seq: 1, seed: crc32.Checksum(b[:], castagnoli)}
}

func (f *framer) checksum(payload []byte) uint32 {
	return crc32.Update(f.start(len(payload)), castagnoli, payload)
}

// start returns the checksum of the bytes before a payload of n bytes.
func (f *framer) start(n int) uint32 {
	binary.LittleEndian.PutUint64(f.head[:], f.seq)
	binary.LittleEndian.PutUint32(f.head[8:], uint32(n))
	return crc32.Update(f.seed, castagnoli, f.head[:])
}

// begin begins a record in dst. The caller appends the body and then calls end.
func (f *framer) begin(dst []byte, t recordType) (out []byte, at int) {
	at = len(dst)
	return append(dst, 0, 0, 0, 0, 0, 0, 0, 0, byte(t)), at
}

func (f *framer) end(dst []byte, at int) []byte { return f.endWith(dst, at, nil) }

// endWith is end for a record with long values refs, each to be inserted at its At in dst.
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

// durableRecord appends a durable-offset or an end record, which says that everything before offset
// is durable.
func (f *framer) durableRecord(dst []byte, t recordType, offset int64) []byte {
	dst, at := f.begin(dst, t)
	dst = append(dst, durableMarker[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, f.id)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(offset))
	dst = binary.LittleEndian.AppendUint64(dst, f.seq)
	return f.end(dst, at)
}

// durableOffset returns the offset of a durable-offset or end record with a valid checksum.
func durableOffset(payload []byte, id uint64) (offset int64, ok bool) {
	if len(payload) != durableSize || [8]byte(payload[1:9]) != durableMarker ||
		binary.LittleEndian.Uint64(payload[9:]) != id {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(payload[17:])), true
}
