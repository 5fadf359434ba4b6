package persistence_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/persistence"
)

// TestBlocksHaveTheStateOfASnapshot sends a whole keyspace in blocks, which are taken at any size
// while entries are added, and stores it elsewhere.
func TestBlocksHaveTheStateOfASnapshot(t *testing.T) {
	s := mustOpen(t, faultfs.New(), persistence.SyncNo)
	defer s.close()
	rng := rand.New(rand.NewPCG(9, 9))
	for range 300 {
		s.act(rng)
	}
	setValues(s, 'v', 700_000)
	for i := range 20_000 {
		require.NoError(t, s.handle.Put(i%3, fmt.Appendf(nil, "user:%06d", i), entry.String, []byte("value"), entry.NoExpiry))
	}
	for _, least := range []int{0, 1, 4096, 64 << 10, 1 << 30} {
		other := keyspace.New(keyspace.Options{Clock: s.clock, Shards: 2, Databases: 3})
		b := persistence.NewBlocks()
		added, taken, blocks, longest := 0, 0, 0, 0
		drain := func(least int) error {
			for {
				payload, keys, ok := b.Take(least)
				if !ok {
					return b.Err()
				}
				got, err := persistence.DecodeBlock(payload, other.Restore)
				require.NoError(t, err)
				require.Equal(t, keys, got)
				require.Positive(t, keys)
				taken, blocks, longest = taken+keys, blocks+1, max(longest, len(payload))
			}
		}
		require.NoError(t, s.ks.Snapshot(func(db int, key []byte, e entry.Entry) {
			b.Add(db, key, e)
			added++
		}, func() error { return drain(least) }))
		require.NoError(t, drain(0))
		require.Equal(t, added, taken)
		require.Equal(t, s.state(), stateOf(other), "least %d", least)
		require.Less(t, longest, 256<<10+700_000+100)
		if least >= 4096 {
			require.Less(t, blocks, added/100)
		}
		other.Close()
	}
}

// TestDecodeBlockRefuses bytes that are not a block, and returns the error of the function that it
// calls.
func TestDecodeBlockRefuses(t *testing.T) {
	b := persistence.NewBlocks()
	for i := range 3 {
		b.Add(1, fmt.Appendf(nil, "key%d", i), entry.Entry{Kind: entry.String, Value: []byte("v"), Expiry: begin})
	}
	whole, keys, ok := b.Take(0)
	require.True(t, ok)
	require.Equal(t, 3, keys)
	whole = bytes.Clone(whole)
	_, _, ok = b.Take(0)
	require.False(t, ok)
	use := func(db int, _ []byte, e entry.Entry) error {
		require.Equal(t, 1, db)
		require.Equal(t, begin, e.Expiry)
		return nil
	}
	wholes := 0
	for n := range whole {
		keys, err := persistence.DecodeBlock(whole[:n], use)
		if err == nil {
			wholes++ // cut between entries
			require.Less(t, keys, 3)
		}
	}
	require.Equal(t, 3, wholes)
	_, err := persistence.DecodeBlock(append([]byte{2}, whole[1:]...), use)
	require.ErrorContains(t, err, "type 2")
	full := errors.New("full")
	keys, err = persistence.DecodeBlock(whole, func(int, []byte, entry.Entry) error { return full })
	require.ErrorIs(t, err, full)
	require.Equal(t, 1, keys)
	b.Add(0, make([]byte, entry.MaxKeyLength+1), entry.Entry{Kind: entry.String, Expiry: begin})
	whole, _, _ = b.Take(0)
	_, err = persistence.DecodeBlock(whole, func(int, []byte, entry.Entry) error { return nil })
	require.ErrorContains(t, err, "too long")
}

// FuzzDecodeBlock decodes any bytes: entries are slices of them, so they take little memory. A
// block of the decoded entries has the same entries.
func FuzzDecodeBlock(f *testing.F) {
	b := persistence.NewBlocks()
	for i := range 5 {
		e := entry.Entry{Kind: entry.Kind(i + 1), Value: make([]byte, i), Expiry: begin.Add(1 << (10 * i))}
		if i == 3 {
			e.Expiry = entry.NoExpiry
		}
		b.Add(2, fmt.Appendf(nil, "user:%d", i), e)
	}
	payload, _, _ := b.Take(0)
	f.Add(bytes.Clone(payload))
	f.Add(payload[:len(payload)-1])
	f.Fuzz(func(t *testing.T, payload []byte) {
		bytesSeen, first := 0, 0
		var err error
		require.Less(t, allocated(func() {
			first, err = persistence.DecodeBlock(payload, func(_ int, _ []byte, e entry.Entry) error {
				bytesSeen += len(e.Value)
				return nil
			})
		}), mostFor(payload))
		require.LessOrEqual(t, bytesSeen, len(payload))
		if err != nil || first > 1000 {
			return
		}
		again := persistence.NewBlocks()
		_, err = persistence.DecodeBlock(payload, func(db int, key []byte, e entry.Entry) error {
			again.Add(db, key, e)
			return nil
		})
		require.NoError(t, err)
		var want, got []string
		list := func(into *[]string) func(int, []byte, entry.Entry) error {
			return func(db int, key []byte, e entry.Entry) error {
				*into = append(*into, fmt.Sprintf("%d %q %d %d %x", db, key, e.Kind, e.Expiry, e.Value))
				return nil
			}
		}
		_, err = persistence.DecodeBlock(payload, list(&want))
		require.NoError(t, err)
		for {
			block, _, ok := again.Take(0)
			if !ok {
				break
			}
			_, err = persistence.DecodeBlock(block, list(&got))
			require.NoError(t, err)
		}
		require.NoError(t, again.Err())
		require.Equal(t, want, got)
	})
}

// TestEveryServerHasItsOwnDatabase: blocks and records may have keys of it, whatever the number of
// databases for clients, and not of other databases beyond that number.
func TestEveryServerHasItsOwnDatabase(t *testing.T) {
	for db, fits := range map[int]bool{0: true, 3: true, 4: false, 15: false, entry.SystemDatabase: true, entry.SystemDatabase + 1: false} {
		e := entry.Entry{Kind: entry.String, Value: []byte("v"), Expiry: entry.NoExpiry}
		b := persistence.NewBlocks()
		b.Add(db, []byte("k"), e)
		block, _, ok := b.Take(0)
		require.True(t, ok)
		var r effect.Record
		r.Put(db, []byte("k"), &e)
		record, _ := r.Parts()
		for _, err := range []error{persistence.CheckBlock(block, 4), persistence.CheckEffects(record, 4)} {
			if fits {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "is beyond the 4 that there are")
			}
		}
	}
}
