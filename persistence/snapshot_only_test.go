package persistence_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/persistence"
)

// saves writes snapshots of a server without a log. Before each it stores as many keys as there
// were snapshots, and after each it calls done.
func saves(t *testing.T, fsys *faultfs.FS, n int, done func(state string, err error)) {
	clock := clocktest.New(begin)
	dir, err := persistence.Open(options(fsys, clock))
	if err != nil {
		done("", err)
		return
	}
	ks := keyspace.New(keyspace.Options{Clock: clock, Shards: 4, Databases: 3})
	defer ks.Close()
	v := ks.NewHandle()
	for i := range n {
		for j := range i {
			require.NoError(t, v.Put(j%3, fmt.Appendf(nil, "key:%d", j), entry.String, fmt.Appendf(nil, "%d", i), entry.NoExpiry))
		}
		_, err := dir.Rewrite(ks)
		done(stateOf(ks), err)
	}
}

// Without a log, a power failure leaves the last complete snapshot or the one that was being
// written, and so does a kill after any failed call.
func TestSnapshotSurvivesPowerFailureWithoutALog(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	check := func(fsys *faultfs.FS, kept, next, about string) {
		got, dir := lookedAll(t, fsys, about)
		require.Contains(t, []string{kept, next}, got, about)
		require.Nil(t, dir.Torn())
	}
	var states []string
	saves(t, faultfs.New(), 6, func(state string, err error) {
		require.NoError(t, err)
		states = append(states, state)
	})
	next := func(i int) string { return states[min(i, len(states)-1)] }

	crashes, fsys, kept := 0, faultfs.New(), 0
	fsys.Watch(func(n int, crash func(*rand.Rand) *faultfs.FS) {
		for range 8 {
			before := ""
			if kept > 0 {
				before = states[kept-1]
			}
			check(crash(rng), before, next(kept), fmt.Sprintf("power failure before call %d", n))
			crashes++
		}
	})
	saves(t, fsys, len(states), func(_ string, err error) {
		require.NoError(t, err)
		kept++
	})
	require.Greater(t, crashes, 400)

	for n := 1; ; n++ {
		fsys, hit, last, tried := faultfs.New(), false, "", ""
		fsys.Inject(func(i int, _ faultfs.Call) error {
			if i == n {
				hit = true
				return syscall.EIO
			}
			return nil
		})
		saves(t, fsys, len(states), func(state string, err error) {
			if tried = state; err == nil {
				last = state
			}
		})
		if !hit {
			break
		}
		check(fsys.Kill(), last, tried, fmt.Sprintf("call %d failed", n))
	}
}

// lookedAll returns what a server would load, and changes nothing.
func lookedAll(t *testing.T, fsys *faultfs.FS, about string) (string, *persistence.Dir) {
	clock := clocktest.New(begin)
	dir, err := persistence.Open(options(fsys, clock))
	require.NoError(t, err, about)
	ks := keyspace.New(keyspace.Options{Clock: clock, Shards: 1})
	defer ks.Close()
	require.NoError(t, dir.Load(ks, &persistence.Progress{}), about)
	return stateOf(ks), dir
}
