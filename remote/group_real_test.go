//go:build real

package remote_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote"
)

// hourly asks for one of that many units of a key, none of which comes back during the test.
func hourly(key string, most int64) *decide.Ask {
	q, err := gcra.NewQuota(most-1, 1, 3600)
	if err != nil {
		panic(err)
	}
	return &decide.Ask{Key: []byte(key), Family: decide.Cell, Quota: q, Quantity: 1}
}

// severalOf asks for one unit of each key.
func severalOf(most int64, keys ...string) *decide.Ask {
	a := &decide.Ask{Family: decide.Several, Details: make([]limit.Decision, len(keys))}
	for _, key := range keys {
		q := hourly(key, most).Quota
		a.Clauses = append(a.Clauses, decide.Clause{Key: []byte(key), Quota: &q, Quantity: 1})
	}
	return a
}

// usedOf returns the number of charged units of a key.
func usedOf(t *testing.T, s *remote.Store, key string, most int64) int64 {
	t.Helper()
	a := hourly(key, most)
	a.Quantity = 0
	require.NoError(t, submit(s, a))
	return most - a.Decision.Remaining
}

// storesOfCluster opens servers of a cluster of three masters that answer.
func storesOfCluster(t *testing.T, n int, hot map[string]string) []*remote.Store {
	t.Helper()
	c := storetest.Best(t).Cluster(t, 3, 0, storetest.Options{})
	all := openStores(t, remote.Options{URL: c.URL(), Prefix: "cs:", Timeout: 10 * time.Second, HotKeys: hot}, n)
	for _, s := range all {
		for i := range 20 {
			key := fmt.Sprint("ready", i)
			storetest.Await(t, "the store answers", func() error { return submit(s, hourly(key, 1000)) })
		}
	}
	return all
}

// TestMultiOverACluster: the units that four servers admit, of limits in several slots and of
// limits in one, are those that are charged.
func TestMultiOverACluster(t *testing.T) {
	all := storesOfCluster(t, 4, nil)
	const callers, calls, most = 4, 60, 300
	groups := [][]string{{"a", "b"}, {"b", "c"}, {"c", "a"}, {"{u}1", "{u}2"}, {"{u}2", "a"}}
	admitted := map[string]*atomic.Int64{}
	for _, keys := range groups {
		for _, key := range keys {
			admitted[key] = new(atomic.Int64)
		}
	}
	errs := make(chan error)
	for i := range len(all) * callers {
		go func() {
			for n := range calls {
				a := severalOf(most, groups[(i+n)%len(groups)]...)
				if err := submit(all[i%len(all)], a); err != nil {
					errs <- err
					return
				}
				for _, c := range a.Clauses {
					if !a.Refused {
						admitted[string(c.Key)].Add(1)
					}
				}
			}
			errs <- nil
		}()
	}
	for range len(all) * callers {
		require.NoError(t, <-errs)
	}
	refused := 0
	for key, n := range admitted {
		for _, s := range all { // an undoing in progress holds the key
			require.Equal(t, n.Load(), usedOf(t, s, key, most), key)
		}
		if n.Load() == most {
			refused++
		}
	}
	require.NotZero(t, refused, "some limits are reached")
}

// TestTransactionOverACluster: several servers charge the keys of one slot together.
func TestTransactionOverACluster(t *testing.T) {
	all := storesOfCluster(t, 3, nil)
	const calls, most = 100, 100
	var admitted atomic.Int64
	ended := make(chan struct{})
	for _, s := range all {
		go func() {
			for range calls {
				x, y := hourly("{p}x", most), hourly("{p}y", most)
				done := make(chan struct{})
				s.Submit([]*decide.Ask{x, y}, true, func() { close(done) })
				<-done
				if x.Err == nil && y.Err == nil && x.Decision == y.Decision && x.Decision.Allowed() {
					admitted.Add(1)
				}
			}
			ended <- struct{}{}
		}()
	}
	for range all {
		<-ended
	}
	require.EqualValues(t, most, admitted.Load())
	require.EqualValues(t, most, usedOf(t, all[0], "{p}x", most))
	require.EqualValues(t, most, usedOf(t, all[1], "{p}y", most))
}

// TestLeaseOverACluster: servers hand out a limit from leases, and no more than the limit.
func TestLeaseOverACluster(t *testing.T) {
	all := storesOfCluster(t, 3, map[string]string{"": "exact", "hot": "lease"})
	const callers, most = 2, 60_000
	var admitted, calls atomic.Int64
	errs := make(chan error)
	for i := range len(all) * callers {
		go func() {
			s := all[i%len(all)]
			for range most {
				a := hourly("hot", most)
				if err := submit(s, a); err != nil {
					errs <- err
					return
				}
				calls.Add(1)
				if a.Decision.Allowed() {
					admitted.Add(1)
				} else if a.Decision.Remaining == 0 && admitted.Load() > most*9/10 {
					break
				}
			}
			errs <- nil
		}()
	}
	for range len(all) * callers {
		require.NoError(t, <-errs)
	}
	require.LessOrEqual(t, admitted.Load(), int64(most))
	require.Greater(t, admitted.Load(), int64(most*9/10))
	leased, gets := 0.0, 0.0
	for _, s := range all {
		leased += figure(t, s.Info().Figures, "leased")
		gets += figure(t, s.Info().Figures, "gets") + figure(t, s.Info().Figures, "swaps")
	}
	require.Greater(t, leased, float64(calls.Load())*0.9)
	require.Less(t, gets, float64(calls.Load())*0.1)
	// Without calls the rest of a lease is given back.
	storetest.Await(t, "what is left is given back", func() error {
		if used := usedOf(t, all[0], "hot", most); used != admitted.Load() {
			return fmt.Errorf("%d are charged, %d were admitted", used, admitted.Load())
		}
		return nil
	})
}
