package replication

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// What goes from a node to its replica, behind the reply to PSYNC, are chunks:
//
//	type      uint8   a ChunkType
//	zero      3 bytes
//	length    uint32  of the payload
//	offset    uint64
//	checksum  uint32  CRC32C of the 16 bytes before it and the payload
//	payload
//
// Numbers are little-endian. The offset of a tail is that of its first byte. That of a
// block or of the end of a snapshot is where the stream has got to: all before has been
// sent, and the next tail begins there. So a receiver knows of each of them whether
// something is missing. A chunk that only says that its sender is alive has offset 0.

// ChunkType is the first byte of a chunk.
type ChunkType byte

// The types of chunks. A receiver that meets another gives the link up.
const (
	// ChunkTail is a piece of the stream. Frames may go on in the next one.
	ChunkTail ChunkType = 1
	// ChunkBlock is a block of entries, as in a snapshot, with its type byte.
	ChunkBlock ChunkType = 2
	// ChunkWhole ends a full sync: the state is whole once it is applied.
	ChunkWhole ChunkType = 3
	// ChunkAlive has no meaning but that the sender is there.
	ChunkAlive ChunkType = 4
)

const (
	// ChunkHead is how many bytes a chunk has before its payload.
	ChunkHead = 20
	// wholeSize is the length of the payload of [ChunkWhole].
	wholeSize = 8 + 8
	// maxTail is the longest payload of a tail: 1 MiB.
	maxTail = 1 << 20
	// maxBlock is the longest payload of a block. Blocks are some 64 KiB, but a value is
	// never divided, and a snapshot holds values of up to 1 GiB. A receiver makes room as
	// the bytes arrive, and not because of a length.
	maxBlock = 1 << 30
)

// Chunk is one message to a replica.
type Chunk struct {
	Type    ChunkType
	Offset  uint64
	Payload []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendChunk appends c to dst. The payload must be within the bounds of its type.
func AppendChunk(dst []byte, c Chunk) []byte {
	head := len(dst)
	dst = append(openChunk(dst), c.Payload...)
	sealChunk(dst[head:], c.Type, c.Offset)
	return dst
}

// AppendWhole appends the end of a full sync that had so many keys and blocks.
func AppendWhole(dst []byte, offset, keys, blocks uint64) []byte {
	var payload [wholeSize]byte
	binary.LittleEndian.PutUint64(payload[:], keys)
	binary.LittleEndian.PutUint64(payload[8:], blocks)
	return AppendChunk(dst, Chunk{Type: ChunkWhole, Offset: offset, Payload: payload[:]})
}

// Whole returns what the end of a full sync says of it. c must be from [NextChunk].
func (c Chunk) Whole() (keys, blocks uint64) {
	return binary.LittleEndian.Uint64(c.Payload), binary.LittleEndian.Uint64(c.Payload[8:])
}

// openChunk appends room for the head of a chunk, whose payload is to follow.
func openChunk(dst []byte) []byte {
	var head [ChunkHead]byte
	return append(dst, head[:]...)
}

// sealChunk writes the head of chunk, which has its payload.
func sealChunk(chunk []byte, t ChunkType, offset uint64) {
	writeHead(chunk[:ChunkHead], t, offset, chunk[ChunkHead:])
}

// writeHead writes the head of a chunk whose payload may lie elsewhere.
func writeHead(head []byte, t ChunkType, offset uint64, payload []byte) {
	binary.LittleEndian.PutUint32(head, uint32(t))
	binary.LittleEndian.PutUint32(head[4:], uint32(len(payload)))
	binary.LittleEndian.PutUint64(head[8:], offset)
	binary.LittleEndian.PutUint32(head[16:], chunkSum(head, payload))
}

func chunkSum(head, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(head[:16], castagnoli), castagnoli, payload)
}

// Errors of chunks that no sender makes.
var (
	errChunkSum  = errors.New("the checksum of a chunk is wrong")
	errChunkZero = errors.New("a chunk has bytes that must be zero and are not")
)

// ChunkLength returns how long a chunk is, head included, of which head has the first 8
// bytes at least. It is an error if no chunk can begin like this. The length is not
// verified before the whole chunk is there: do not allocate on its word.
func ChunkLength(head []byte) (int, error) {
	t, n := ChunkType(head[0]), binary.LittleEndian.Uint32(head[4:])
	least, most := uint32(0), uint32(0)
	switch t {
	case ChunkTail:
		least, most = 1, maxTail
	case ChunkBlock:
		least, most = 1, maxBlock
	case ChunkWhole:
		least, most = wholeSize, wholeSize
	case ChunkAlive:
	default:
		return 0, fmt.Errorf("a chunk is of type %d, which is not known here", t)
	}
	switch {
	case head[1]|head[2]|head[3] != 0:
		return 0, errChunkZero
	case n < least || n > most:
		return 0, fmt.Errorf("a chunk of type %d has a length of %d", t, n)
	}
	return ChunkHead + int(n), nil
}

// NextChunk returns the first chunk of b, which may be any bytes, and how long it is: 0 if
// it has not arrived completely. The payload is a part of b. After an error nothing of
// the connection may be used.
func NextChunk(b []byte) (c Chunk, n int, err error) {
	if len(b) < 8 {
		return Chunk{}, 0, nil
	}
	n, err = ChunkLength(b)
	if err != nil || n > len(b) {
		return Chunk{}, 0, err
	}
	payload := b[ChunkHead:n:n]
	if chunkSum(b, payload) != binary.LittleEndian.Uint32(b[16:]) {
		return Chunk{}, 0, errChunkSum
	}
	return Chunk{Type: ChunkType(b[0]), Offset: binary.LittleEndian.Uint64(b[8:]), Payload: payload}, n, nil
}
