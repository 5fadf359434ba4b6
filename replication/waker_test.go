package replication_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/replication"
	"github.com/cellserver/cellserver/transport"
)

// drained returns a source with a replica that has been sent everything.
func drained(t *testing.T) (s *replication.Source, p *conn, pump transport.Pump, advance func(time.Duration)) {
	s, clock := begun(t, defaults())
	p = &conn{}
	_, pump = s.PSync(call(1, p))
	drain(t, pump)
	return s, p, pump, clock.Advance
}

// TestWakeLingers: the first write after a replica was sent everything wakes it a millisecond
// later. Later writes within that millisecond do not wake it again.
func TestWakeLingers(t *testing.T) {
	s, p, pump, advance := drained(t)
	for range 10 {
		s.Write(frameOf(2))
	}
	require.Zero(t, p.wakes.Load())
	advance(time.Millisecond - 1)
	require.Zero(t, p.wakes.Load())
	advance(1)
	require.EqualValues(t, 1, p.wakes.Load())

	// It is not woken again before it was filled.
	s.Write(frameOf(2))
	advance(10 * time.Millisecond)
	require.EqualValues(t, 1, p.wakes.Load())
	require.Len(t, drain(t, pump), replication.ChunkHead+11*9)
	advance(10 * time.Millisecond)
	require.EqualValues(t, 1, p.wakes.Load())
	s.Write(frameOf(2))
	advance(time.Millisecond)
	require.EqualValues(t, 2, p.wakes.Load())
}

// TestWakeAgainAndAgain: while the stream continues, a replica is woken every millisecond. When
// it stops, no timer is left.
func TestWakeAgainAndAgain(t *testing.T) {
	s, clock := begun(t, defaults())
	p := &conn{}
	_, pump := s.PSync(call(1, p))
	drain(t, pump)
	timers := clock.Timers()
	for n := range int64(5) {
		s.Write(frameOf(2))
		require.Equal(t, timers+1, clock.Timers())
		clock.Advance(time.Millisecond - 1)
		require.Equal(t, n, p.wakes.Load())
		s.Write(frameOf(2))
		clock.Advance(1)
		require.Equal(t, n+1, p.wakes.Load())
		drain(t, pump)
	}
	require.Equal(t, timers+1, clock.Timers())
	clock.Advance(time.Millisecond)
	require.Equal(t, timers, clock.Timers())
	require.EqualValues(t, 5, p.wakes.Load())
}

// TestWakeOfMuch: a large write wakes the replica at once.
func TestWakeOfMuch(t *testing.T) {
	s, p, _, _ := drained(t)
	for s.Offset() < 63<<10 {
		s.Write(frameOf(2, make([]byte, 91)...))
	}
	require.Zero(t, p.wakes.Load())
	for s.Offset() < 64<<10 {
		s.Write(frameOf(2, make([]byte, 91)...))
	}
	require.EqualValues(t, 1, p.wakes.Load())
}

// TestWakeWhileSomebodyWaits: while a client waits for replicas, they are woken at once, for
// bytes that are already there and for new ones.
func TestWakeWhileSomebodyWaits(t *testing.T) {
	s, p, pump, _ := drained(t)
	s.Write(frameOf(2))
	require.Zero(t, p.wakes.Load())
	waits := &conn{}
	_, o := s.Await(1, s.Offset(), waits)
	require.Equal(t, transport.Pending, o)
	require.EqualValues(t, 1, p.wakes.Load())
	drain(t, pump)
	s.Write(frameOf(2))
	require.EqualValues(t, 2, p.wakes.Load())
	drain(t, pump)

	// It is not so if the client waits for more replicas than there are.
	s.Acknowledge(1, says(s.Offset()))
	require.EqualValues(t, 1, waits.wakes.Load())
	_, o = s.Await(2, s.Offset(), waits)
	require.Equal(t, transport.Pending, o)
	s.Write(frameOf(2))
	require.EqualValues(t, 2, p.wakes.Load())
}

// TestWakeAfterAFillThatWasFull: bytes written between the last check of the stream and the sleep
// are not lost. Fill is called with exactly enough room, and with less.
func TestWakeAfterAFillThatWasFull(t *testing.T) {
	s, p, pump, advance := drained(t)
	s.Write(frameOf(2, make([]byte, 91)...))
	advance(time.Millisecond)
	require.EqualValues(t, 1, p.wakes.Load())
	for more := true; more; {
		var err error
		_, more, err = fill(t, pump, 50)
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, p.wakes.Load())
	s.Write(frameOf(2))
	advance(time.Millisecond)
	require.EqualValues(t, 2, p.wakes.Load())
}

// TestSleepAfterADrop: a replica whose connection is about to close may go to sleep after it was
// dropped. It is removed with its connection, and its old offset does not affect the new stream.
func TestSleepAfterADrop(t *testing.T) {
	s, p, pump, advance := drained(t)
	s.Write(frameOf(2, make([]byte, 70_000)...))
	require.EqualValues(t, 1, p.wakes.Load())
	s.Begin(replication.History{ID: id2, Offset2: -1}, 0)
	_, _, err := fill(t, pump, 1000)
	require.Error(t, err)
	pump.Closed()

	_, pump = s.PSync(call(2, p))
	drain(t, pump)
	s.Write(frameOf(2))
	require.EqualValues(t, 1, p.wakes.Load())
	advance(time.Millisecond)
	require.EqualValues(t, 2, p.wakes.Load())
}

// TestClosedSourceWakesNobody: a closed source has no timer and wakes no replica.
func TestClosedSourceWakesNobody(t *testing.T) {
	s, clock := begun(t, defaults())
	p := &conn{}
	_, pump := s.PSync(call(1, p))
	drain(t, pump)
	s.Write(frameOf(2))
	require.Positive(t, clock.Timers())
	s.Close()
	require.Zero(t, clock.Timers())
	s.Write(frameOf(2))
	clock.Advance(time.Minute)
	require.Zero(t, p.wakes.Load())
}
