package keyspace_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/shared"
)

// TestWeighCountsReferences: a reply takes for a long value only its reference, in a string as in a
// collection.
func TestWeighCountsReferences(t *testing.T) {
	effort.Alone(t)
	ks := keyspace.New(keyspace.Options{Clock: clocktest.New(1)})
	defer ks.Close()
	v := ks.NewHandle()
	defer v.Close()
	const many = 100
	for _, n := range []int{100, shared.Least - 1, shared.Least, 1 << 20} {
		key, list := fmt.Append(nil, "s", n), fmt.Append(nil, "l", n)
		require.NoError(t, v.Put(0, key, entry.String, make([]byte, n), entry.NoExpiry))
		require.NoError(t, v.WriteList(0, list, func(l *collection.List) error {
			for range many {
				if err := l.PushBack(make([]byte, n)); err != nil {
					return err
				}
			}
			return nil
		}))
		elements, copied := v.Weigh(0, key)
		require.Zero(t, elements)
		require.Equal(t, shared.Copied(n), copied)
		elements, copied = v.Weigh(0, list)
		require.Equal(t, many, elements)
		require.InDelta(t, many*shared.Copied(n), copied, many*8)
	}
	require.Equal(t, shared.RefSize, shared.Copied(1<<20))
}
