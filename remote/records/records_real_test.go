//go:build real

package records_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote/engine"
	"github.com/cellserver/cellserver/remote/records"
)

// open opens an engine at url and waits until it answers.
func open(t *testing.T, url string) *engine.Engine {
	t.Helper()
	at, err := engine.ParseAddress(url)
	require.NoError(t, err)
	start := time.Now()
	e, err := engine.Open(engine.Options{
		Address: at, Prefix: "cs:", Hidden: records.KeyPrefix, Timeout: time.Second,
		Elapsed: func() time.Duration { return time.Since(start) },
	})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	storetest.Await(t, "the engine answers", func() error {
		_, err := e.Eval(context.Background(), "return 1", []string{"a"}, nil)
		return err
	})
	return e
}

// TestScriptsOnEngines plays the random scripts on each kind of engine.
func TestScriptsOnEngines(t *testing.T) {
	storetest.Each(t, func(t *testing.T, en storetest.Engine) {
		e := open(t, en.Single(t, storetest.Options{}).URL())
		eval := func(script string, keys, args []string) any {
			reply, err := e.Eval(t.Context(), script, keys, args)
			require.NoError(t, err)
			return reply
		}
		for seed := range uint64(40) {
			eval("for _, k in ipairs(KEYS) do redis.call('DEL', k) end", append([]string{head, log}, records.BucketKeys()...), nil)
			play(t, rand.New(rand.NewPCG(seed, 2)), eval, time.Now, func() int { return 1000 }) // no hash is read in parts
		}
	})
}

// TestStoresOnEngines has several goroutines change and follow the records in an engine and in a
// cluster.
func TestStoresOnEngines(t *testing.T) {
	storetest.Each(t, func(t *testing.T, en storetest.Engine) {
		t.Run("single", func(t *testing.T) { storesOn(t, en.Single(t, storetest.Options{}).URL()) })
		if !testing.Short() {
			t.Run("cluster", func(t *testing.T) { storesOn(t, en.Cluster(t, 3, 0, storetest.Options{}).URL()) })
		}
	})
}

func storesOn(t *testing.T, url string) {
	const stores, changes, many = 3, 20, 30_000
	var all []*records.Store
	var tables []*table
	var e *engine.Engine
	for range stores {
		e = open(t, url)
		is := &table{records: map[string]string{}}
		tables = append(tables, is)
		all = append(all, records.New(records.Options{Engine: e, Observer: is, Now: func() limit.Instant { return e.Now() }}))
	}
	var done sync.WaitGroup
	for i, s := range all {
		done.Go(func() {
			for n := 0; n < changes; {
				_, _ = s.Refresh()
				pairs := [][]byte{fmt.Appendf(nil, "main/p%d", n), fmt.Appendf(nil, "%d", i), fmt.Appendf(nil, "own/%d/%d", i, n), []byte("x")}
				if s.SetStrings(pairs, 0) == nil {
					n++
				}
			}
		})
		done.Go(func() {
			for range changes {
				_, _ = s.Follow(t.Context())
			}
		})
	}
	done.Wait()

	var pairs [][]byte
	for i := range many {
		pairs = append(pairs, fmt.Appendf(nil, "override/p/%d", i), fmt.Appendf(nil, "value %d", i))
	}
	_, _ = all[0].Refresh()
	require.NoError(t, all[0].SetStrings(pairs, 0))
	var version records.Version
	for i, s := range all {
		require.NoError(t, s.Load(t.Context()))
		require.Len(t, tables[i].records, many+changes+stores*changes)
		require.Equal(t, tables[0].records, tables[i].records)
		require.EqualValues(t, stores*changes+1, s.Version().Number)
		require.True(t, version == records.Version{} || version == s.Version())
		version = s.Version()
	}

	flushed := make(chan error, 1)
	e.Flush(func(err error) { flushed <- err })
	require.NoError(t, <-flushed)
	again, err := all[1].Follow(t.Context())
	require.NoError(t, err)
	require.False(t, again)
	require.NoError(t, all[1].Load(t.Context()))
	require.Len(t, tables[1].records, many+changes+stores*changes)
	for _, s := range all {
		require.Zero(t, s.Lost())
	}
}
