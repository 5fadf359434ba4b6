package persistence_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// call makes a decision of a kind that depends on the number.
func call(v *keyspace.Handle, kind int, key []byte, n int64, member int) (limit.Decision, error) {
	switch {
	case kind == 0:
		q, err := gcra.NewQuota(5, 30, 60)
		if err != nil {
			return limit.Decision{}, err
		}
		return asks.Throttle(v, 0, key, &q, n)
	case kind == 11:
		rule := calendar.Rule{Unit: calendar.Day, From: uint16(n) * 60}
		return asks.Allow(v, 0, key, &slidingwindow.Call{Mode: slidingwindow.Calendar, Limit: 10, Calendar: rule, Quantity: n})
	case kind <= 4:
		modes := []slidingwindow.Mode{slidingwindow.Counter, slidingwindow.Fixed, slidingwindow.Log, slidingwindow.Buckets}
		return asks.Allow(v, 0, key, &slidingwindow.Call{Mode: modes[kind-1], Limit: 10, Window: 20 * time.Second, Quantity: n, Slots: 5})
	case kind <= 9:
		modes := []tokenbucket.Mode{tokenbucket.Greedy, tokenbucket.Debt, tokenbucket.Interval, tokenbucket.Leaky, tokenbucket.Warmup}
		c := tokenbucket.Call{Mode: modes[kind-5], Capacity: 6, Init: 6, Count: 1, Period: time.Second, Interval: time.Second, Quantity: n, Cold: 3, Warmup: 5 * time.Second}
		if modes[kind-5] == tokenbucket.Leaky || modes[kind-5] == tokenbucket.Warmup {
			c.Waits, c.MaxWait = true, 3*time.Second
		}
		return asks.Acquire(v, 0, key, &c)
	}
	return asks.Lease(v, 0, key, &concurrency.Call{Op: concurrency.Acquire, Limit: 4, Lease: 5 * time.Second, Member: fmt.Appendf(nil, "m%d", member)})
}

// A server that is killed and started again decides like one that was not, for every kind of
// limiter.
func TestRestartsDecideTheSame(t *testing.T) {
	const (
		calls = 100_000
		kinds = 12
	)
	clock := clocktest.New(begin)
	plain := keyspace.New(keyspace.Options{Clock: clock, Shards: 4})
	defer plain.Close()
	through := plain.NewHandle()
	fsys := faultfs.New()
	s, err := open(t, fsys, clock, persistence.SyncEverySecond)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(21, 12))
	var allowed, denied [kinds]int
	for i := range calls {
		clock.Advance(time.Duration(rng.IntN(3e6)))
		through.Refresh()
		s.handle.Refresh()
		k := rng.IntN(1000)
		key, n, member := fmt.Appendf(nil, "key:%d", k), int64(rng.IntN(3)), rng.IntN(6)
		want, wantErr := call(through, k%kinds, key, n, member)
		got, gotErr := call(s.handle, k%kinds, key, n, member)
		require.NoError(t, wantErr, "kind %d", k%kinds)
		require.NoError(t, gotErr)
		require.Equal(t, want, got, "call %d, kind %d", i, k%kinds)
		if want.Allowed() {
			allowed[k%kinds]++
		} else {
			denied[k%kinds]++
		}
		if i%10_000 == 5000 {
			_, err := s.dir.Rewrite(s.ks)
			require.NoError(t, err)
		}
		if i%9_000 == 8_999 {
			require.Equal(t, persistence.Kept, s.settled())
			fsys = fsys.Kill()
			s.ks.Close()
			clock.Advance(700 * time.Millisecond)
			s, err = open(t, fsys, clock, persistence.SyncEverySecond)
			require.NoError(t, err)
		}
	}
	for kind := range kinds {
		require.Positive(t, allowed[kind], "kind %d", kind)
		require.Positive(t, denied[kind], "kind %d", kind)
	}
	s.close()
}

// Large values get blocks of their own, which are loaded like small ones.
func TestLargeValuesInASnapshot(t *testing.T) {
	effort.Alone(t)
	fsys := faultfs.New()
	s := mustOpen(t, fsys, persistence.SyncNo)
	for i := range 200 {
		value := bytes.Repeat([]byte{byte(i)}, 1+i*i*7%200_000)
		require.NoError(t, s.handle.Put(i%2, fmt.Appendf(nil, "key:%d", i), entry.String, value, entry.NoExpiry))
	}
	done, err := s.dir.Rewrite(s.ks)
	require.NoError(t, err)
	require.EqualValues(t, 200, done.Keys)
	want := s.state()
	s.close()
	s = mustOpen(t, fsys, persistence.SyncNo)
	require.Equal(t, want, s.state())
	s.close()
}
