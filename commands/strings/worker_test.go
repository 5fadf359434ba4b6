package strings_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
)

// TestWorkersKeepNoLongValues: a worker that has read a long value does not keep its memory. With
// the goroutine transport under load nearly every client has its own worker.
func TestWorkersKeepNoLongValues(t *testing.T) {
	const size, workers = 900_000, 20
	f := inproc.Open(t)
	f.Do("SET", "long", strings.Repeat("v", size))
	before := inproc.HeapBytes()
	all := make([]*inproc.Fed, workers)
	for i := range all {
		all[i] = f.Another()
		turn := all[i].Turn(inproc.Encode(nil, "GET", "long"), nil)
		require.Len(t, turn.Whole(), size+len("$900000\r\n\r\n"))
	}
	require.Less(t, inproc.HeapBytes(), before+workers*size/4)
	require.Equal(t, inproc.Pong, all[0].Do("PING"))
}

// TestIncrexAllocatesNothing: an integer call allocates nothing, whether it is applied or
// declined.
func TestIncrexAllocatesNothing(t *testing.T) {
	if effort.RaceDetector {
		t.Skip("the race detector has pools lose some of what they are given")
	}
	b := inproc.OpenTimed(t)
	calls := inproc.Encode(nil, "INCREX", "applied", "UBOUND", "1000000000", "EX", "60", "ENX")
	calls = inproc.Encode(calls, "INCREX", "declined", "BYINT", "5", "UBOUND", "3", "PX", "1000")
	b.Packet(calls)
	require.Zero(t, testing.AllocsPerRun(1000, func() { b.Packet(calls) }))
}
