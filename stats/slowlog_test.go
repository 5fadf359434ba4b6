package stats

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSlowLogCutsArgumentsAsRedisDoes(t *testing.T) {
	words := func(n int) (args [][]byte) {
		for i := range n {
			args = append(args, strconv.AppendInt(nil, int64(i), 10))
		}
		return args
	}
	require.Len(t, CutArgs(words(32)), 32)
	require.Equal(t, "31", CutArgs(words(32))[31])
	cut := CutArgs(words(33))
	require.Len(t, cut, 32)
	require.Equal(t, []string{"30", "... (2 more arguments)"}, cut[30:])
	require.Equal(t, "... (999969 more arguments)", CutArgs(words(1_000_000))[31])

	long := bytes.Repeat([]byte("A"), 129)
	require.Equal(t, []string{strings.Repeat("A", 128), strings.Repeat("A", 128) + "... (1 more bytes)"}, CutArgs([][]byte{long[:128], long}))
}

func TestSlowLogKeepsTheNewest(t *testing.T) {
	var l SlowLog
	l.Add(SlowEntry{})
	require.Zero(t, l.Len(), "nothing is kept before there is a bound")
	l.SetMax(3)
	for i := range 5 {
		l.Add(SlowEntry{Took: time.Duration(i)})
	}
	newest := l.Newest(10)
	require.Len(t, newest, 3)
	for i, e := range newest {
		require.EqualValues(t, 4-i, e.ID)
		require.EqualValues(t, 4-i, e.Took)
	}
	require.Len(t, l.Newest(2), 2)
	require.Empty(t, l.Newest(0))
	l.SetMax(1)
	require.Equal(t, 1, l.Len())
	l.Reset()
	require.Zero(t, l.Len())
	l.Add(SlowEntry{})
	require.EqualValues(t, 5, l.Newest(1)[0].ID, "numbers go on")
}

// TestSlowLogIsBoundedInBytes: the memory is bounded, whatever slowlog-max-len is.
func TestSlowLogIsBoundedInBytes(t *testing.T) {
	var l SlowLog
	l.SetMax(1 << 30)
	arg := strings.Repeat("x", maxSlowArg)
	args := make([]string, maxSlowArgs)
	for i := range args {
		args[i] = arg
	}
	for range 10_000 {
		l.Add(SlowEntry{Args: args})
	}
	require.LessOrEqual(t, l.Len()*maxSlowArgs*maxSlowArg, maxSlowBytes)
	require.LessOrEqual(t, l.bytes, maxSlowBytes)
	require.Greater(t, l.Len(), 1000)
	require.EqualValues(t, 9_999, l.Newest(1)[0].ID)
}

func TestEventsKeepTheWorstOfASecond(t *testing.T) {
	var es Events
	es.Note(CommandEvent, time.Hour, 1)
	require.Empty(t, es.All(), "nothing is kept without a threshold")
	es.SetThreshold(10 * time.Millisecond)
	es.Note(CommandEvent, 10*time.Millisecond-1, 1)
	require.Empty(t, es.All())
	for _, n := range []struct {
		took time.Duration
		at   int64
	}{{30, 1}, {50, 1}, {20, 1}, {15, 2}} {
		es.Note(CommandEvent, n.took*time.Millisecond, n.at)
	}
	es.Note(SyncEvent, 12*time.Millisecond, 7)
	require.Equal(t, []Samples{
		{CommandEvent, []Sample{{1, 50}, {2, 15}}, 50},
		{SyncEvent, []Sample{{7, 12}}, 12},
	}, es.All())

	for i := range 1000 {
		es.Note(FastCommandEvent, time.Second, int64(i))
	}
	s, ok := es.Of(FastCommandEvent)
	require.True(t, ok)
	require.Len(t, s.List, maxSamples)
	require.Equal(t, Sample{999, 1000}, s.List[maxSamples-1])

	require.True(t, es.Reset(SyncEvent))
	require.False(t, es.Reset(SyncEvent))
	require.Equal(t, 2, es.ResetAll())
	require.Empty(t, es.All())
}

func TestEventNames(t *testing.T) {
	for e := range events {
		named, ok := EventNamed(e.String())
		require.True(t, ok)
		require.Equal(t, e, named)
	}
	_, ok := EventNamed("fork")
	require.False(t, ok)
}
