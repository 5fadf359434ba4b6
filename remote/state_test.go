package remote_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote"
)

// TestStatesArePackedAndUnpacked tests that unpacking returns the packed state, that the write
// replaces the present value, and that nothing but states is packed or unpacked.
func TestStatesArePackedAndUnpacked(t *testing.T) {
	const now = limit.Instant(1_800_000_000_000_000_000)
	s := remote.State{Stamp: now, Entry: entry.Entry{Kind: entry.Cell, Expiry: now.Add(time.Hour), Value: []byte{}}}
	one, two := remote.NewPacker(), remote.NewPacker()
	first, err := one.Pack([]byte("k"), nil, s)
	require.NoError(t, err)
	require.Empty(t, first.Old)
	require.Equal(t, time.Hour+time.Second, first.Keep)
	got, err := remote.Unpack(first.New)
	require.NoError(t, err)
	require.Equal(t, s, got)

	s.Stamp, s.Entry.Expiry = now+1, now.Add(time.Minute)
	second, err := two.Pack([]byte("k"), first.New, s)
	require.NoError(t, err)
	require.Equal(t, first.New[:len(second.Old)], second.Old)
	require.NotEqual(t, first.New[:12], second.New[:12], "every write has a tag of its own")
	require.Contains(t, string(second.New), string(first.New[4:12]), "the writer before is remembered")
	got, err = remote.Unpack(second.New)
	require.NoError(t, err)
	require.Equal(t, s, got)

	got, err = remote.Unpack(nil)
	require.NoError(t, err)
	require.Zero(t, got)
	_, err = remote.Unpack([]byte("1800000000"))
	require.ErrorIs(t, err, limit.ErrWrongType)
	_, err = one.Pack([]byte("k"), []byte("1800000000"), s)
	require.ErrorIs(t, err, limit.ErrWrongType)
	s.Entry.Kind = entry.String
	_, err = one.Pack([]byte("k"), nil, s)
	require.ErrorIs(t, err, limit.ErrWrongType)
}
