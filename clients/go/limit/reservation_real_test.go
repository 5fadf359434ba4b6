//go:build real && unix

package limit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clients/go/limit"
)

// TestReservationsOfTheProgram: units that are reserved come back by a commit, by a cancellation and when the caller has died.
func TestReservationsOfTheProgram(t *testing.T) {
	p := start(t)
	// Inline limits have another key to settle than a policy.
	for name, limits := range map[string][]string{"policy": nil, "inline": {"TB 100 1 3600"}, "several": {"TB 100 1 3600", "SW 1000 1h FIXED"}} {
		t.Run(name, func(t *testing.T) { testReservations(t, p, limits) })
	}
}

func testReservations(t *testing.T, p *program, limits []string) {
	dial := func() *limit.Limiter {
		o := limit.Options{URL: "unix://" + p.socket, Limits: limits, OnUnavailable: limit.Deny, Deadline: limit.MaxDeadline}
		if limits == nil {
			o.Policy = "api"
		}
		l, err := limit.New(t.Context(), o)
		require.NoError(t, err)
		return l
	}
	l := dial()
	defer func() { require.NoError(t, l.Close()) }()
	// left returns what is left of the bucket, unless the machine is too busy for the deadline.
	left := func() int64 {
		var r limit.Result
		require.Eventually(t, func() bool {
			var err error
			r, err = l.Take(t.Context(), limit.Call{Key: "ann"})
			return err == nil && r.Source == limit.Server
		}, time.Minute, time.Millisecond)
		return r.Limits[0].Remaining
	}
	reserve := func(by *limit.Limiter, units int64, ttl time.Duration) *limit.Reservation {
		r, err := by.Reserve(t.Context(), limit.Call{Key: "ann", Cost: units}, ttl)
		require.NoError(t, err)
		require.Equal(t, limit.Server, r.Result.Source)
		require.True(t, r.Result.Allowed)
		return r
	}
	used, failed := reserve(l, 50, time.Minute), reserve(l, 40, time.Minute)
	require.EqualValues(t, 10, left())
	require.NoError(t, used.Commit(t.Context(), 20))
	require.EqualValues(t, 40, left())
	require.NoError(t, failed.Cancel(t.Context()))
	require.EqualValues(t, 80, left())

	dies := dial()
	abandoned := reserve(dies, 80, limit.MinTTL)
	require.NoError(t, dies.Close())
	require.Eventually(t, func() bool { return left() == 80 }, time.Minute, 10*time.Millisecond)
	require.Error(t, abandoned.Commit(t.Context(), 1), "its limiter is closed")

	lost := reserve(l, 10, time.Minute)
	p.kill()
	p.run()
	require.ErrorIs(t, lost.Commit(t.Context(), 5), limit.ErrUnsettled, "the server has forgotten it")
}
