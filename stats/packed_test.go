package stats_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/stats"
)

// TestPackedIsReadAsItWasWritten: and what a later release has added to a block is skipped.
func TestPackedIsReadAsItWasWritten(t *testing.T) {
	b := binary.AppendUvarint(nil, 7)
	b = stats.PackText(b, "text")
	b = stats.PackBlock(b, func(b []byte) []byte {
		return append(stats.PackRate(b, 1.5), "of a later release"...)
	})
	b = binary.AppendUvarint(b, 2)
	for _, n := range []uint64{3, 4} {
		b = stats.PackBlock(b, func(b []byte) []byte { return append(binary.AppendUvarint(b, n), 9, 9) })
	}
	b = stats.PackText(b, []byte("rest"))
	p := stats.Unpack(b)
	require.EqualValues(t, 7, p.Number(7))
	require.Equal(t, "text", p.Text(4))
	p.Block(func(b *stats.Packed) { require.InDelta(t, 1.5, b.Rate(), 0) })
	var list []int64
	p.List(2, func(b *stats.Packed) { list = append(list, b.Number(10)) })
	require.Equal(t, []int64{3, 4}, list)
	require.Equal(t, []byte("rest"), p.Bytes(4))
	require.True(t, p.Empty())
}

// TestPackedRefusesWhatIsOutOfItsBounds: after a fault all values are zero, and no function is called.
func TestPackedRefusesWhatIsOutOfItsBounds(t *testing.T) {
	never := func(*stats.Packed) { t.Error("there is nothing to read") }
	for name, read := range map[string]func(p *stats.Packed){
		"number":    func(p *stats.Packed) { require.Zero(t, p.Number(4)) },
		"text":      func(p *stats.Packed) { require.Empty(t, p.Text(4)) },
		"too short": func(p *stats.Packed) { require.Empty(t, p.Text(5)) },
		"rate":      func(p *stats.Packed) { require.Zero(t, p.Rate()) },
		"block":     func(p *stats.Packed) { p.Block(never) },
		"list":      func(p *stats.Packed) { p.List(4, never) },
		"in a block": func(p *stats.Packed) {
			p.Number(10)
			p.Block(func(b *stats.Packed) { require.Zero(t, b.Number(1)) })
		},
		"in a list": func(p *stats.Packed) { p.List(5, func(b *stats.Packed) { require.Zero(t, b.Number(1)) }) },
		"noted":     func(p *stats.Packed) { p.Fault() },
	} {
		p := stats.Unpack([]byte{5, 1, 2, 3})
		read(p)
		require.False(t, p.OK(), name)
		require.Zero(t, p.Number(math.MaxInt64), name)
		require.Zero(t, p.Rate(), name)
		require.Empty(t, p.Text(10), name)
		p.Block(never)
		p.List(10, never)
		require.False(t, p.Empty(), name)
	}
	for _, rate := range []float64{-1, math.NaN(), math.Inf(1), math.MaxFloat64} {
		p := stats.Unpack(stats.PackRate(nil, rate))
		require.Zero(t, p.Rate())
		require.False(t, p.OK(), "%v", rate)
	}
}
