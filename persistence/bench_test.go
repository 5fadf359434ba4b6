package persistence_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/persistence"
)

// benchKeys is the number of keys of 16 bytes that are loaded.
const benchKeys = 1_000_000

// benchDir fills a directory on a real disk with a key for each record, in a base or in a log.
func benchDir(b *testing.B, base bool) (persistence.Options, *clocktest.Clock) {
	clock := clocktest.New(begin)
	o := options(nil, clock)
	o.FS, o.Path = persistence.OS{}, b.TempDir()
	dir, err := persistence.Open(o)
	require.NoError(b, err)
	ks := keyspace.New(keyspace.Options{Clock: clock})
	defer ks.Close()
	log, err := dir.Start(persistence.LogOptions{Policy: persistence.SyncNo})
	require.NoError(b, err)
	ks.SetJournal(log)
	v := ks.NewHandle()
	q, err := gcra.NewQuota(1_000_000, 30, 60)
	require.NoError(b, err)
	for i := range benchKeys {
		if i%64 == 0 {
			clock.Advance(10 * time.Microsecond)
			v.Refresh()
			require.Equal(b, persistence.Kept, log.Await(max(1, v.TakePosition()), nil))
		}
		_, err := asks.Throttle(v, 0, fmt.Appendf(nil, "user:%011d", i), &q, 1000)
		require.NoError(b, err)
	}
	if base {
		_, err := dir.Rewrite(ks)
		require.NoError(b, err)
	}
	require.NoError(b, dir.Close())
	return o, clock
}

func benchmarkLoad(b *testing.B, base bool) {
	o, clock := benchDir(b, base)
	for b.Loop() {
		dir, err := persistence.Open(o)
		require.NoError(b, err)
		ks := keyspace.New(keyspace.Options{Clock: clock})
		require.NoError(b, dir.Load(ks, &persistence.Progress{}))
		require.NoError(b, dir.Close())
		b.StopTimer()
		ks.Close()
		b.StartTimer()
	}
	b.ReportMetric(benchKeys*float64(b.N)/b.Elapsed().Seconds(), "keys/s")
}

func BenchmarkLoadSnapshot(b *testing.B) { benchmarkLoad(b, true) }

func BenchmarkLoadLog(b *testing.B) { benchmarkLoad(b, false) }

// BenchmarkAppend measures what a log adds to a decision.
func BenchmarkAppend(b *testing.B) {
	for _, on := range []bool{false, true} {
		b.Run(fmt.Sprintf("journal=%t", on), func(b *testing.B) {
			clock := clocktest.New(begin)
			o := options(nil, clock)
			o.FS, o.Path = persistence.OS{}, b.TempDir()
			ks := keyspace.New(keyspace.Options{Clock: clock})
			defer ks.Close()
			dir, err := persistence.Open(o)
			require.NoError(b, err)
			log, err := dir.Start(persistence.LogOptions{Policy: persistence.SyncNo})
			require.NoError(b, err)
			if on {
				ks.SetJournal(log)
			}
			v := ks.NewHandle()
			q, err := gcra.NewQuota(1<<40, 1000, 1)
			require.NoError(b, err)
			a := &decide.Ask{Key: []byte("user:12345678901"), Family: decide.Cell, Quota: q, Quantity: 1}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				v.Decide(a)
				if i++; i%32 == 0 && on {
					log.Await(v.TakePosition(), nil)
				}
			}
			require.NoError(b, dir.Close())
		})
	}
}
