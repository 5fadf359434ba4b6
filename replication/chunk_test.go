package replication_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/replication"
)

// TestChunkBytes compares with the bytes of chunks that were written by hand.
func TestChunkBytes(t *testing.T) {
	for _, c := range []struct {
		name  string
		chunk replication.Chunk
		head  []byte // before the checksum
	}{
		{
			"tail",
			replication.Chunk{Type: replication.ChunkTail, Offset: 0x0102030405060708, Payload: []byte("abc")},
			[]byte{1, 0, 0, 0, 3, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1},
		},
		{
			"block",
			replication.Chunk{Type: replication.ChunkBlock, Offset: 1, Payload: bytes.Repeat([]byte{1}, 300)},
			[]byte{2, 0, 0, 0, 44, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0},
		},
		{
			"whole",
			replication.Chunk{Type: replication.ChunkWhole, Offset: 9, Payload: make([]byte, 16)},
			[]byte{3, 0, 0, 0, 16, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0},
		},
		{
			"alive",
			replication.Chunk{Type: replication.ChunkAlive, Payload: []byte{}},
			[]byte{4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		},
	} {
		sum := crc32.Checksum(append(bytes.Clone(c.head), c.chunk.Payload...), crc32.MakeTable(crc32.Castagnoli))
		want := append(binary.LittleEndian.AppendUint32(bytes.Clone(c.head), sum), c.chunk.Payload...)

		got := replication.AppendChunk([]byte("before"), c.chunk)
		require.Equal(t, append([]byte("before"), want...), got, c.name)

		chunk, n, err := replication.NextChunk(append(want, "behind"...))
		require.NoError(t, err, c.name)
		require.Equal(t, len(want), n, c.name)
		require.Equal(t, c.chunk, chunk, c.name)
	}
}

func TestWhole(t *testing.T) {
	c, n, err := replication.NextChunk(replication.AppendWhole(nil, 7, 11_742, 1<<40))
	require.NoError(t, err)
	require.Equal(t, replication.ChunkHead+16, n)
	require.EqualValues(t, 7, c.Offset)
	keys, blocks := c.Whole()
	require.EqualValues(t, 11_742, keys)
	require.EqualValues(t, 1<<40, blocks)
}

// TestChunkInPieces: NextChunk returns 0 for an incomplete chunk, wherever it is cut.
func TestChunkInPieces(t *testing.T) {
	whole := replication.AppendChunk(nil, replication.Chunk{Type: replication.ChunkTail, Offset: 5, Payload: []byte("some bytes")})
	for i := range whole {
		_, n, err := replication.NextChunk(whole[:i])
		require.NoError(t, err, i)
		require.Zero(t, n, i)
	}
	_, n, err := replication.NextChunk(whole)
	require.NoError(t, err)
	require.Equal(t, len(whole), n)
}

// TestChunkLengths: every invalid length of a type is refused after the first 8 bytes.
func TestChunkLengths(t *testing.T) {
	for _, c := range []struct {
		kind   replication.ChunkType
		length uint32
		good   bool
	}{
		{replication.ChunkTail, 0, false},
		{replication.ChunkTail, 1, true},
		{replication.ChunkTail, 1 << 20, true},
		{replication.ChunkTail, 1<<20 + 1, false},
		{replication.ChunkBlock, 0, false},
		{replication.ChunkBlock, 1, true},
		{replication.ChunkBlock, 1 << 30, true},
		{replication.ChunkBlock, 1<<30 + 1, false},
		{replication.ChunkBlock, 1<<32 - 1, false},
		{replication.ChunkWhole, 0, false},
		{replication.ChunkWhole, 15, false},
		{replication.ChunkWhole, 16, true},
		{replication.ChunkWhole, 17, false},
		{replication.ChunkAlive, 0, true},
		{replication.ChunkAlive, 1, false},
		{0, 0, false},
		{5, 1, false},
		{128, 1, false},
		{255, 1, false},
	} {
		head := binary.LittleEndian.AppendUint32([]byte{byte(c.kind), 0, 0, 0}, c.length)
		n, err := replication.ChunkLength(head)
		if c.good {
			require.NoError(t, err, "%d %d", c.kind, c.length)
			require.Equal(t, replication.ChunkHead+int(c.length), n)
			continue
		}
		require.Error(t, err, "%d %d", c.kind, c.length)
		_, _, err = replication.NextChunk(head)
		require.Error(t, err)
	}
	for i := 1; i < 4; i++ {
		head := make([]byte, 8)
		head[0], head[i] = byte(replication.ChunkAlive), 1
		_, _, err := replication.NextChunk(head)
		require.Error(t, err, "byte %d must be zero", i)
	}
}

// TestEveryBitFlipIsDetected flips each bit of chunks. Either there is an error, or the length is
// longer; then the checksum fails once the bytes are there.
func TestEveryBitFlipIsDetected(t *testing.T) {
	for _, c := range []replication.Chunk{
		{Type: replication.ChunkTail, Offset: 1 << 40, Payload: []byte(strings.Repeat("frame", 40))},
		{Type: replication.ChunkBlock, Offset: 3, Payload: []byte("\x01block")},
		{Type: replication.ChunkWhole, Offset: 1, Payload: make([]byte, 16)},
		{Type: replication.ChunkAlive},
	} {
		whole := replication.AppendChunk(nil, c)
		b := append(bytes.Clone(whole), make([]byte, 1<<20)...)
		for bit := range 8 * len(whole) {
			b[bit/8] ^= 1 << (bit % 8)
			if bit > 0 {
				b[(bit-1)/8] ^= 1 << ((bit - 1) % 8)
			}
			if n, err := replication.ChunkLength(b); err == nil && n > len(b) {
				continue // of a block: the rest has not arrived, and has a checksum
			}
			_, _, err := replication.NextChunk(b)
			require.Error(t, err, "type %d bit %d", c.Type, bit)
		}
	}
}

// FuzzChunk parses any bytes. They are chunks that encode to the same bytes again, or they are
// refused or incomplete. Memory is allocated for bytes that have arrived, not for the length in a
// header.
func FuzzChunk(f *testing.F) {
	f.Add([]byte{}, uint16(0))
	f.Add(replication.AppendChunk(nil, replication.Chunk{Type: replication.ChunkTail, Offset: 1, Payload: []byte("a")}), uint16(3))
	f.Add(replication.AppendWhole(replication.AppendChunk(nil, replication.Chunk{Type: replication.ChunkAlive}), 1, 2, 3), uint16(21))
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, uint16(8))
	f.Fuzz(func(t *testing.T, b []byte, cut uint16) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var again []byte
		rest := b
		var failed error
		for failed == nil {
			c, n, err := replication.NextChunk(rest)
			if failed = err; n == 0 {
				break
			}
			again, rest = replication.AppendChunk(again, c), rest[n:]
		}
		runtime.ReadMemStats(&after)
		require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(64*len(b)+1<<20))
		require.True(t, bytes.HasPrefix(b, again))
		require.Equal(t, len(b), len(again)+len(rest))

		// A prefix of the bytes parses to the same chunks, as far as it goes.
		part := b[:min(len(b), int(cut))]
		read := 0
		for {
			_, n, err := replication.NextChunk(part[read:])
			if n == 0 {
				if err != nil {
					require.Equal(t, len(again), read)
					require.Error(t, failed)
				}
				break
			}
			read += n
		}
		require.LessOrEqual(t, read, len(again))
	})
}
