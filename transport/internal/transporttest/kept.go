package transporttest

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport"
)

// TestKeptInput keeps pieces of random length and consumes some, 3,000 times. The kept input must be
// the bytes that have arrived and were not consumed. Only such bytes may take memory. Long input
// must take it outside of Go's heap, and Release must free all of it.
func TestKeptInput(t *testing.T, kept KeptInput) {
	const limit, chunk = 4 << 20, 64 << 10
	r := rand.New(rand.NewPCG(1, 2))
	before := transport.MappedInput()
	var want []byte
	most := int64(0)
	for step := range 3_000 {
		if len(want) < limit {
			room := kept.Room(limit, chunk)
			require.NotEmpty(t, room)
			require.LessOrEqual(t, len(room), min(chunk, limit-len(want)))
			piece := room[:1+r.IntN(len(room))]
			for i := range piece {
				piece[i] = byte(step + i)
			}
			want = append(want, piece...)
			kept.Received(len(piece))
		}
		if r.IntN(40) == 0 || len(want) == limit {
			n := len(want)
			if r.IntN(2) == 0 {
				n = r.IntN(len(want) + 1)
			}
			kept.Consumed(n)
			want = want[n:]
		}
		most = max(most, transport.MappedInput()-before)
		if len(want) != len(kept.Bytes()) || step%100 == 0 {
			require.True(t, bytes.Equal(want, kept.Bytes()), "step %d", step)
		}
	}
	require.Greater(t, most, int64(1<<20))
	kept.Release()
	for range 2 { // each call releases the buffers that were not used since the previous call
		transport.TrimInput()
	}
	require.LessOrEqual(t, transport.MappedInput(), before)
}

// TestLongInput: a buffer that is longer than the received bytes takes no memory for the rest.
// Consumed bytes count until the buffer is released.
func TestLongInput(t *testing.T, kept KeptInput) {
	for range 2 {
		transport.TrimInput()
	}
	require.Zero(t, transport.MappedInput())
	for range 30 {
		room := kept.Room(32<<20, 64<<10)
		clear(room)
		kept.Received(len(room))
	}
	held := len(kept.Bytes())
	require.Greater(t, held, 1<<20)
	require.Equal(t, held, kept.Size())
	room := kept.Room(32<<20, 64<<10)
	clear(room)
	kept.Received(len(room))
	kept.Consumed(held + len(room))
	require.EqualValues(t, held+len(room), transport.MappedInput())
}
