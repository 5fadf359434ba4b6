package keyspace_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
)

// TestPrefetchBesideChanges looks keys up without a lock while tables grow, shrink
// and are flushed: it may find anything, but must not fault or change anything.
func TestPrefetchBesideChanges(t *testing.T) {
	ks := keyspace.New(keyspace.Options{Clock: clocktest.New(1), Databases: 2})
	defer ks.Close()
	keys := make([][]byte, 4096)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key:%0*d", i%90, i)
	}
	var done atomic.Bool
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			v := ks.NewView()
			defer v.Close()
			for i := 0; !done.Load(); i++ {
				from := i * 37 % len(keys)
				v.Prefetch(i%2, keys[from:min(from+70, len(keys))])
			}
		})
	}
	v := ks.NewView()
	defer v.Close()
	for round := range 30 {
		for _, key := range keys {
			require.NoError(t, v.Put(round%2, key, keyspace.String, key, keyspace.NoExpiry))
		}
		require.Equal(t, len(keys), v.Len(round%2))
		for _, key := range keys[:len(keys)*(round%5)/5] {
			require.True(t, v.Delete(round%2, key))
		}
		if round%7 == 6 {
			v.FlushAll()
			continue
		}
		v.Flush(round % 2)
	}
	done.Store(true)
	readers.Wait()
}
