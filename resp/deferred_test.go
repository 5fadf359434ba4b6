package resp_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
)

// tally is a ledger that adds up bytes.
type tally struct{ sum atomic.Int64 }

func (l *tally) Count(bytes int64) { l.sum.Add(bytes) }

// flat returns the bytes of a reply.
func flat(r resp.Reply) string {
	var b strings.Builder
	from := 0
	for _, ref := range r.Refs {
		b.Write(r.Buf[from:ref.At])
		b.Write(ref.Bytes)
		from = ref.At
	}
	b.Write(r.Buf[from:])
	return b.String()
}

// TestDeferredStringsGiveTheSameReply: a writer that copies the strings later produces the same
// reply and the same size as one that copies them at once, and releases everything.
func TestDeferredStringsGiveTheSameReply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var values, pieces tally
		elements := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 9), rapid.IntRange(10, 2000), rapid.IntRange(shared.Least, shared.Least+5)), 0, 400).Draw(t, "lengths")
		between := rapid.Bool().Draw(t, "something between")
		inPieces := rapid.Bool().Draw(t, "in pieces")
		guessed := rapid.IntRange(0, 500).Draw(t, "guessed")
		var stored [][]byte
		for i, n := range elements {
			stored = append(stored, shared.New([]byte(strings.Repeat(string(rune('a'+i%26)), n)), 0))
		}
		write := func(w *resp.Writer) {
			w.Array(len(stored))
			for i, v := range stored {
				w.Element(v)
				if between {
					w.Int(int64(i))
				}
			}
		}
		now, later := resp.Writer{Ledger: &values}, resp.Writer{Ledger: &values}
		if inPieces {
			later.Pieces = &pieces
		}
		for _, w := range []*resp.Writer{&now, &later} {
			w.Status("before")
		}
		calls := 0
		later.Defer(guessed, func() { calls++ })
		write(&now)
		write(&later)
		require.Equal(t, now.Size(0), later.Size(0))
		require.Zero(t, calls)
		if rapid.Bool().Draw(t, "cut") {
			mark := len("+before\r\n")
			now.Cut(mark)
			later.Cut(mark)
		}
		later.CopyDeferred()
		later.CopyDeferred()
		require.Equal(t, 1, calls)
		require.Equal(t, now.Length(), later.Length())
		a, b := now.Take(), later.Take()
		require.Equal(t, flat(a), flat(b))
		a.Release()
		b.Release()
		require.Zero(t, pieces.sum.Load())
		for _, v := range stored {
			require.False(t, shared.Busy(v))
		}
	})
}

// TestDeferredStringsOutliveTheirValues: a long value that is removed from the keyspace before it
// is copied counts as one that replies refer to.
func TestDeferredStringsOutliveTheirValues(t *testing.T) {
	var values tally
	w := resp.Writer{Ledger: &values}
	long := shared.New(make([]byte, shared.Least), 0)
	w.Defer(1, func() {})
	w.Element(long)
	shared.Drop(long, &values)
	require.Equal(t, shared.Size(long), values.sum.Load())
	w.CopyDeferred()
	reply := w.Take()
	require.Equal(t, shared.Size(long), values.sum.Load())
	reply.Release()
	require.Zero(t, values.sum.Load())
}
