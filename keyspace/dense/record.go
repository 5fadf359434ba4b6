package dense

import (
	"encoding/binary"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
)

// A record has this form:
//
//	8 bytes  expiry
//	4 bytes  header: kind (7 bits), beside (1), length of the key (15), slack (9)
//	         key, value, and slack unused bytes
//
// If the record would be longer than maxInline, the header is followed by the number (4 bytes) of a
// blob (blobs.go) that has key and value, and "beside" is set.

const (
	recordHead = 12
	blobRecord = recordHead + 4

	headKind   = 1<<7 - 1
	headBeside = 1 << 7
	keyShift   = 8
	keyMask    = entry.MaxKeyLength
	slackShift = 23
)

func header(rec []byte) uint32 { return binary.LittleEndian.Uint32(rec[8:]) }

func putHeader(rec []byte, h uint32) { binary.LittleEndian.PutUint32(rec[8:], h) }

func putExpiry(rec []byte, at limit.Instant) { binary.LittleEndian.PutUint64(rec, uint64(at)) }

func expiry(rec []byte) limit.Instant { return limit.Instant(binary.LittleEndian.Uint64(rec)) }

func blobNumber(rec []byte) uint32 { return binary.LittleEndian.Uint32(rec[recordHead:]) }

func keyLength(h uint32) int { return int(h >> keyShift & keyMask) }
