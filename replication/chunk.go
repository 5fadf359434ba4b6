package replication

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// After the reply to PSYNC, a node sends its replica a sequence of chunks:
//
//	type      uint8   a ChunkType
//	zero      3 bytes
//	length    uint32  of the payload
//	offset    uint64
//	checksum  uint32  CRC32C of the 16 bytes before it and the payload
//	payload
//
// Numbers are little-endian. The offset of a tail is the offset of its first byte. The offset of a
// block, or of the end of a full resynchronization, is the position of the stream: everything
// before it was sent, and the next tail begins there. So each chunk shows a receiver whether
// something is missing. A [ChunkAlive] has offset 0.

// ChunkType is the first byte of a chunk. It says what the payload is.
type ChunkType byte

// These are the types of chunks. A receiver closes the link when it reads a chunk of any other
// type.
const (
	// ChunkTail is a piece of the stream. A frame may continue in the next tail.
	ChunkTail ChunkType = 1
	// ChunkBlock is a block of entries, in the format of a snapshot, with its type byte.
	ChunkBlock ChunkType = 2
	// ChunkWhole ends a full resynchronization. The state is complete when the replica has applied
	// everything before this chunk.
	ChunkWhole ChunkType = 3
	// ChunkAlive is a keepalive without a payload. It only shows that the sender is alive.
	ChunkAlive ChunkType = 4
)

const (
	// ChunkHead is the size of a chunk's header, in bytes.
	ChunkHead = 20
	// wholeSize is the length in bytes of the payload of a [ChunkWhole].
	wholeSize = 8 + 8
	// maxTail is the maximum length of the payload of a tail: 1 MiB.
	maxTail = 1 << 20
	// maxBlock is the maximum length of the payload of a block: 1 GiB. Blocks are about 64 KiB,
	// but a value is never divided, and a snapshot may have values of up to 1 GiB. A receiver
	// allocates memory as the bytes arrive, and not according to the length in the header.
	maxBlock = 1 << 30
)

// Chunk is one message from a node to its replica. The start of this file describes the offset for
// each type.
type Chunk struct {
	Type    ChunkType
	Offset  uint64
	Payload []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendChunk appends the encoding of c to dst. The length of the payload must be valid for the
// type of c.
func AppendChunk(dst []byte, c Chunk) []byte {
	head := len(dst)
	dst = append(openChunk(dst), c.Payload...)
	sealChunk(dst[head:], c.Type, c.Offset)
	return dst
}

// AppendWhole appends to dst the chunk that ends a full resynchronization at offset. keys and
// blocks are the numbers of keys and blocks that the resynchronization has sent.
func AppendWhole(dst []byte, offset, keys, blocks uint64) []byte {
	var payload [wholeSize]byte
	binary.LittleEndian.PutUint64(payload[:], keys)
	binary.LittleEndian.PutUint64(payload[8:], blocks)
	return AppendChunk(dst, Chunk{Type: ChunkWhole, Offset: offset, Payload: payload[:]})
}

// Whole returns the numbers of keys and blocks in the end of a full resynchronization. c must be
// a valid ChunkWhole, such as from [NextChunk].
func (c Chunk) Whole() (keys, blocks uint64) {
	return binary.LittleEndian.Uint64(c.Payload), binary.LittleEndian.Uint64(c.Payload[8:])
}

// openChunk appends room for the header of a chunk to dst and returns the result. The caller then
// appends the payload and calls sealChunk.
func openChunk(dst []byte) []byte {
	var head [ChunkHead]byte
	return append(dst, head[:]...)
}

// sealChunk writes the header at the beginning of chunk, which has room for the header and then the
// payload.
func sealChunk(chunk []byte, t ChunkType, offset uint64) {
	writeHead(chunk[:ChunkHead], t, offset, chunk[ChunkHead:])
}

// writeHead writes the header of a chunk to head. The payload may be in another slice.
func writeHead(head []byte, t ChunkType, offset uint64, payload []byte) {
	binary.LittleEndian.PutUint32(head, uint32(t))
	binary.LittleEndian.PutUint32(head[4:], uint32(len(payload)))
	binary.LittleEndian.PutUint64(head[8:], offset)
	binary.LittleEndian.PutUint32(head[16:], chunkSum(head, payload))
}

// chunkSum returns the checksum of a chunk: CRC32C of the first 16 bytes of head and the payload.
func chunkSum(head, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(head[:16], castagnoli), castagnoli, payload)
}

// These are the errors for chunks that only a faulty sender sends.
var (
	errChunkSum  = errors.New("the checksum of a chunk is wrong")
	errChunkZero = errors.New("a chunk has bytes that must be zero and are not")
)

// ChunkLength returns the length of a chunk in bytes, including the header. head must have at
// least the first 8 bytes of the chunk. The error means that no chunk begins with these bytes.
// The checksum that covers the length can only be verified after the whole chunk has arrived, so
// callers must not allocate that many bytes in advance.
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

// NextChunk returns c, the first chunk of b, and its length n in bytes. n is 0 if the chunk has not
// arrived completely. b may be any bytes: the chunk is checked. The payload of c is a part of b.
// After an error, callers must not use anything more from the connection.
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
