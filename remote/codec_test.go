package remote

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
)

func mustHex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(tb, err)
	return b
}

// TestGoldenBytesOfValues: servers of all versions share the values in the engine, so their format
// never changes.
func TestGoldenBytesOfValues(t *testing.T) {
	cell := entry.Entry{Kind: entry.Cell, Expiry: 0x1122334455667788}
	first := (&value{}).encode(newTag(0xa1a2a3a4, 0xb1), 0x0102030405060708, &cell)
	require.Equal(t, ""+
		"01020000"+"a1a2a3a4"+"000000b1"+"0102030405060708"+"1122334455667788", hex.EncodeToString(first))

	window := entry.Entry{
		Kind: entry.OfWindow(slidingwindow.Fixed), Expiry: 9,
		Value: mustHex(t, "0100000000000000"+"0200000000000000"+"0300000000000000"),
	}
	v, err := decode(first)
	require.NoError(t, err)
	second := v.encode(newTag(0xc1c2c3c4, 7), 8, &window)
	require.Equal(t, ""+
		"01120100"+"c1c2c3c4"+"00000007"+"0000000000000008"+"0000000000000009"+
		"a1a2a3a4000000b1"+
		"0100000000000000"+"0200000000000000"+"0300000000000000", hex.EncodeToString(second))

	v, err = decode(second)
	require.NoError(t, err)
	require.Equal(t, newTag(0xc1c2c3c4, 7), v.tag)
	require.Equal(t, limit.Instant(8), v.stamp)
	require.Equal(t, window, v.entry)
	require.True(t, v.has(newTag(0xa1a2a3a4, 0xb1)))
	require.True(t, v.has(newTag(0xc1c2c3c4, 7)))
	require.False(t, v.has(newTag(0xa1a2a3a4, 0xb2)))
	require.Equal(t, entry.None, func() entry.Kind { e := v.at(9); return e.Kind }())
	require.Equal(t, window, v.at(8))
}

// TestValueKeepsTheLatestWriteOfEachOtherWriter: the newest first, at most seven, and each writer
// once.
func TestValueKeepsTheLatestWriteOfEachOtherWriter(t *testing.T) {
	cell := entry.Entry{Kind: entry.Cell, Expiry: 5}
	var v value
	write := func(writer, sequence uint32) {
		var err error
		v, err = decode(v.encode(newTag(writer, sequence), 1, &cell))
		require.NoError(t, err)
	}
	seen := func() (all []tag) {
		v.writers(func(one tag) bool { all = append(all, one); return true })
		return all
	}
	write(1, 1)
	write(1, 2)
	require.Equal(t, []tag{newTag(1, 2)}, seen())
	write(2, 1)
	write(1, 3)
	write(3, 1)
	require.Equal(t, []tag{newTag(3, 1), newTag(1, 3), newTag(2, 1)}, seen())
	for w := uint32(4); w <= 8; w++ {
		require.False(t, v.full())
		write(w, 1)
	}
	require.True(t, v.full())
	write(2, 2)
	require.Equal(t, []tag{newTag(2, 2), newTag(8, 1), newTag(7, 1), newTag(6, 1), newTag(5, 1), newTag(4, 1), newTag(3, 1), newTag(1, 3)}, seen())
	write(9, 1)
	require.False(t, v.has(newTag(1, 3)), "an eighth older writer is forgotten")
	require.True(t, v.has(newTag(2, 2)))
}

// TestForeignBytesAreNoValue: bytes that no server has written have the wrong type.
func TestForeignBytesAreNoValue(t *testing.T) {
	cell := entry.Entry{Kind: entry.Cell, Expiry: 5, Value: make([]byte, 8)}
	good := (&value{}).encode(newTag(1, 1), 1, &cell)
	change := func(at int, b byte) []byte {
		raw := append([]byte(nil), good...)
		raw[at] = b
		return raw
	}
	for name, raw := range map[string][]byte{
		"a number":             []byte("1700000000000000000"),
		"another format":       change(0, 2),
		"no kind":              change(1, 0),
		"a string":             change(1, byte(entry.String)),
		"a hash":               change(1, byte(entry.Hash)),
		"a kind to come":       change(1, 200),
		"a window's kind":      change(1, byte(entry.OfWindow(slidingwindow.Counter))),
		"eight older writers":  change(2, 8),
		"writers missing":      change(2, 2),
		"something in between": change(3, 1),
		"cut":                  good[:27],
		"a cell's byte gone":   good[:len(good)-1],
	} {
		_, err := decode(raw)
		require.ErrorIs(t, err, limit.ErrWrongType, name)
	}
	_, err := decode(good)
	require.NoError(t, err)
}

func TestValuesAreKeptSomewhatBeyondTheirExpiry(t *testing.T) {
	for _, c := range []struct{ expiry, stamp, want limit.Instant }{
		{0, 0, 1e9},
		{1, 0, 1e6 + 1e9},
		{1e6, 0, 1e6 + 1e9},
		{0, 5e9, 1e9},
		{5e9 + 1, 5e9, 1e6 + 1e9},
		{entry.NoExpiry, 0, limit.Instant(longestKeep)},
		{entry.NoExpiry, -5, limit.Instant(longestKeep)},
		{limit.Instant(longestKeep), 0, limit.Instant(longestKeep)},
	} {
		require.Equal(t, time.Duration(c.want), keepFor(c.expiry, c.stamp), "%+v", c)
	}
}

// FuzzDecode: any bytes are decoded or refused, and encoding a decoded value gives the same value.
func FuzzDecode(f *testing.F) {
	cell := entry.Entry{Kind: entry.Cell, Expiry: 5}
	v := value{}
	for w := range uint32(9) {
		raw := v.encode(newTag(w, w), 1, &cell)
		f.Add(raw)
		v, _ = decode(raw)
	}
	f.Add(mustHex(f, "01120100"+"c1c2c3c4"+"00000007"+"0000000000000008"+"0000000000000009"+"a1a2a3a4000000b1"+
		"0100000000000000"+"0200000000000000"+"0300000000000000"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := decode(raw)
		if err != nil {
			require.ErrorIs(t, err, limit.ErrWrongType)
			return
		}
		if v.raw == nil {
			require.Empty(t, raw)
			return
		}
		next, err := decode(v.encode(newTag(v.tag.writer(), 1), v.stamp, &v.entry))
		require.NoError(t, err)
		require.Equal(t, v.entry, next.entry)
		require.Equal(t, v.stamp, next.stamp)
		require.Zero(t, len(next.older)%tagLen)
		require.LessOrEqual(t, len(next.older), mostOlder*tagLen)
	})
}
