package remote

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
	"github.com/stretchr/testify/require"
)

// charged computes from a value in the engine the number of units in use at the instant. It shares
// no code with the code that writes values. interval is the time of one unit of a cell, which the
// value does not have. With intervals and windows longer than the test, the result is the number of
// units that were charged and not given back.
func charged(raw []byte, at limit.Instant, interval time.Duration) int64 {
	if len(raw) == 0 {
		return 0
	}
	kind, older := entry.Kind(raw[1]), int(raw[2])
	expiry := limit.Instant(binary.BigEndian.Uint64(raw[20:]))
	value := raw[28+8*older:]
	if expiry <= at {
		return 0
	}
	word := func(i int) int64 { return int64(binary.LittleEndian.Uint64(value[8*i:])) }
	units := func(until int64, each time.Duration) int64 {
		return limit.CeilDiv(max(0, until-int64(at)), int64(each))
	}
	switch {
	case kind == entry.Cell:
		return units(int64(entry.CellTAT(&entry.Entry{Kind: kind, Expiry: expiry, Value: value})), interval)
	case kind.IsWindow():
		return slidingwindow.Describe(kind.WindowMode(), value, at, func(string, int64) {})
	case kind.IsBucket() && kind.BucketMode() == tokenbucket.Interval:
		return word(1)
	case kind.IsBucket():
		return units(word(0), time.Duration(word(1)))
	}
	panic(fmt.Sprintf("nobody counts what a %s has charged", kind.Type()))
}

// head returns the head of a value without older writers.
func head(kind entry.Kind, writer, sequence uint32, stamp, expiry limit.Instant) []byte {
	raw := []byte{1, byte(kind), 0, 0}
	raw = binary.BigEndian.AppendUint32(raw, writer)
	raw = binary.BigEndian.AppendUint32(raw, sequence)
	raw = binary.BigEndian.AppendUint64(raw, uint64(stamp))
	return binary.BigEndian.AppendUint64(raw, uint64(expiry))
}

func TestChargedReadsEveryFamily(t *testing.T) {
	now := epoch
	later := now.Add(time.Hour)
	words := func(raw []byte, words ...int64) []byte {
		for _, w := range words {
			raw = binary.LittleEndian.AppendUint64(raw, uint64(w))
		}
		return raw
	}
	start := int64(now)
	for name, c := range map[string]struct {
		raw  []byte
		want int64
	}{
		"nothing":     {nil, 0},
		"cell":        {head(entry.Cell, 1, 1, now, now.Add(7*time.Second)), 7},
		"cell's TAT":  {words(head(entry.Cell, 1, 1, now, later), start+int64(3*time.Second)), 3},
		"expired":     {head(entry.Cell, 1, 1, now, now), 0},
		"counter":     {words(head(entry.OfWindow(slidingwindow.Counter), 1, 1, now, later), start, int64(time.Hour), 5, 0), 5},
		"fixed":       {words(head(entry.OfWindow(slidingwindow.Fixed), 1, 1, now, later), start, int64(time.Hour), 9), 9},
		"greedy":      {words(head(entry.OfBucket(tokenbucket.Greedy), 1, 1, now, later), start+int64(4*time.Second), int64(2*time.Second)), 2},
		"interval":    {words(head(entry.OfBucket(tokenbucket.Interval), 1, 1, now, later), start, 6, 1, int64(time.Hour)), 6},
		"older write": {append(older(head(entry.OfWindow(slidingwindow.Fixed), 2, 1, now, later)), words(nil, start, int64(time.Hour), 8)...), 8},
	} {
		require.Equal(t, c.want, charged(c.raw, now, time.Second), name)
	}
}

// older adds one older writer to a head.
func older(raw []byte) []byte {
	raw[2] = 1
	return append(raw, 0, 0, 0, 1, 0, 0, 0, 9)
}

// excess returns by how many units the sorted instants exceed limit at once plus one per interval,
// over the worst span; negative if they never do.
func excess(at []limit.Instant, most int64, interval time.Duration) int64 {
	worst, least := int64(-1<<62), int64(1<<62)
	for i, a := range at {
		ahead := int64(i)*int64(interval) - int64(a.Sub(at[0]))
		least = min(least, ahead)
		worst = max(worst, ahead-least)
	}
	// floor is in units; it is never below 0.
	return worst/int64(interval) + 1 - most
}

// within returns the maximum number of the sorted instants in one half-open span.
func within(at []limit.Instant, span time.Duration) int64 {
	most, from := 0, 0
	for i, a := range at {
		for a.Sub(at[from]) >= span {
			from++
		}
		most = max(most, i-from+1)
	}
	return int64(most)
}

func TestExcess(t *testing.T) {
	at := func(ms ...int) (all []limit.Instant) {
		for _, m := range ms {
			all = append(all, epoch.Add(time.Duration(m)*time.Millisecond))
		}
		return all
	}
	require.EqualValues(t, 0, excess(at(0, 0, 0), 3, time.Millisecond))
	require.EqualValues(t, 1, excess(at(0, 0, 0, 0), 3, time.Millisecond))
	require.EqualValues(t, 0, excess(at(0, 0, 0, 1), 3, time.Millisecond))
	require.EqualValues(t, 1, excess(at(0, 50, 50, 50, 50, 51, 52), 3, time.Millisecond), "the worst span, not the whole")
	require.EqualValues(t, 3, within(at(0, 1, 2, 10, 12), 3*time.Millisecond))
	require.EqualValues(t, 2, within(at(0, 10, 19, 20), 10*time.Millisecond))
}
