package persistence_test

import (
	"encoding/binary"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/persistence"
)

// frame returns a frame with the length n in its head.
func frame(n uint32, rest ...byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, n), append([]byte("sums"), rest...)...)
}

// TestNextFrame parses whole frames, incomplete frames and bytes that are not frames.
func TestNextFrame(t *testing.T) {
	const most = 1 << 30
	for name, c := range map[string]struct {
		in     []byte
		body   string
		n      int
		length int
		bad    bool
	}{
		"nothing":              {},
		"a part of a length":   {in: []byte{1, 0}},
		"a part of a head":     {in: frame(1)[:7]},
		"a head":               {in: frame(1), length: 9},
		"a type alone":         {in: frame(1, 200), n: 9, length: 9},
		"a body":               {in: frame(3, 200, 'a', 'b'), body: "ab", n: 11, length: 11},
		"a part of a body":     {in: frame(3, 200, 'a'), length: 11},
		"two":                  {in: append(frame(2, 200, 'a'), frame(1, 3)...), body: "a", n: 10, length: 10},
		"no payload":           {in: frame(0, 200), bad: true},
		"the longest":          {in: frame(most, 200), length: most + 8},
		"longer than possible": {in: frame(most+1, 200), bad: true},
		"longer than anything": {in: frame(math.MaxUint32, 200), bad: true},
	} {
		f, n, err := persistence.NextFrame(c.in)
		length, why := persistence.FrameLength(c.in)
		require.Equal(t, c.bad, err != nil, name)
		require.Equal(t, err, why, name)
		require.Equal(t, c.n, n, name)
		require.Equal(t, c.length, length, name)
		require.Equal(t, c.body, string(f.Body), name)
		if n > 0 {
			require.EqualValues(t, 200, f.Type, name)
			require.Equal(t, len(f.Body), cap(f.Body), name)
		}
	}
}

// TestParseClockRefusesOtherLengths accepts exactly the bytes of a clock record.
func TestParseClockRefusesOtherLengths(t *testing.T) {
	for n := range 100 {
		_, err := persistence.ParseClock(make([]byte, n))
		require.Equal(t, n == 40, err == nil, n)
	}
}

// allocated calls f and returns the number of bytes that it has allocated from the heap.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// mostFor is the maximum of heap that untrusted bytes may take.
func mostFor(input []byte) uint64 { return uint64(64*len(input) + 1<<20) }

// FuzzNextFrame parses any bytes: a frame has the bytes from which it was parsed, and its length
// alone reserves no memory.
func FuzzNextFrame(f *testing.F) {
	s := mustOpen(f, faultfs.New(), persistence.SyncNo)
	var got tape
	s.log.SetTap(&got)
	require.NoError(f, s.handle.Put(0, []byte("key"), 1, []byte("value"), begin.Add(1<<40)))
	require.NoError(f, s.log.NoteClock())
	s.close()
	f.Add(got.bytes)
	f.Add(got.bytes[:len(got.bytes)-1])
	f.Add(frame(1<<30, 1))
	f.Add(frame(0))
	f.Fuzz(func(t *testing.T, b []byte) {
		require.Less(t, allocated(func() {
			for rest := b; ; {
				frame, n, err := persistence.NextFrame(rest)
				if n == 0 || err != nil {
					return
				}
				if n != 9+len(frame.Body) || n > len(rest) {
					t.Fatalf("a frame of %d bytes has a body of %d", n, len(frame.Body))
				}
				if frame.Type == persistence.FrameClock {
					_, _ = persistence.ParseClock(frame.Body) // must not panic
				}
				rest = rest[n:]
			}
		}), mostFor(b))
	})
}
