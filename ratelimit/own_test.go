package ratelimit_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
)

func own(l *policy.Limits) func(*ratelimit.Call) {
	return func(c *ratelimit.Call) { c.Own = l }
}

// TestOwnLimits: limits of a call take the place of those of the policy and of its candidate, and SHADOW does not
// concern them. An override, a block and an exemption go before them. The state is that of the policy.
func TestOwnLimits(t *testing.T) {
	shadow := counting(main(t, "SW 100 60 FIXED"))
	shadow.Shadow = true
	vip := forKey(policy.Override, "vip")
	vip.Limits = limits(t, "SW 50 60 FIXED")
	try := policy.Entry{Kind: policy.Candidate, Policy: "api", Limits: limits(t, "SW 0 60 FIXED")}
	f := open(t, shadow, vip, try, forKey(policy.Block, "gone"), forKey(policy.Exempt, "free"))
	two := policy.FixedWindow(2, 60)
	for i, refused := range []int64{0, 0, 1, 1} {
		is := f.decided(t, "k", own(two))
		require.Equal(t, refused, is.Refused)
		require.Equal(t, int64(2), is.Limit)
		require.Equal(t, int64(max(0, 1-i)), is.Remaining)
	}
	require.Equal(t, int64(95), f.decided(t, "k").Remaining, "denied calls are charged")
	require.Equal(t, int64(50), f.decided(t, "vip", own(two)).Limit)
	require.Equal(t, int64(1), f.decided(t, "gone", own(two)).Refused)
	require.Zero(t, f.decided(t, "free", own(policy.FixedWindow(0, 60))).Refused)
	counts := f.table.Policy([]byte("api")).Counts
	require.Equal(t, int64(1), counts.TryOnlyOld.Load(), "only the call without limits of its own")
}

// TestOwnLimitsNeedNoPolicy: without the policy, the limits of a call are charged as those of one with Count.
func TestOwnLimitsNeedNoPolicy(t *testing.T) {
	f := open(t)
	two := policy.FixedWindow(2, 60)
	for i := range 5 {
		is := f.decided(t, "k", own(two))
		require.Equal(t, i >= 2, is.Refused > 0)
	}
	require.Equal(t, int64(5), f.decided(t, "k", own(policy.FixedWindow(10, 60)), quantity(0)).Limit-f.decided(t, "k", own(policy.FixedWindow(10, 60)), quantity(0)).Remaining)
	_, err := f.decide("k")
	require.ErrorIs(t, err, ratelimit.ErrNoPolicy)
	unread := errors.New("not read yet")
	f.service.Unread = func() error { return unread }
	_, err = f.decide("k", own(two))
	require.ErrorIs(t, err, unread)
}

// TestOwnLimitsCountDeniedCalls: whatever the flags of the policy say, a denied call is charged, and what takes a part,
// waits or reserves is an error.
func TestOwnLimitsCountDeniedCalls(t *testing.T) {
	f := open(t, main(t, "SW 100 60 FIXED"))
	two := policy.FixedWindow(2, 60)
	require.Equal(t, int64(1), f.decided(t, "k", own(two), quantity(7)).Refused)
	require.Equal(t, int64(92), f.decided(t, "k").Remaining)
	for _, mode := range []ratelimit.Mode{ratelimit.Partial, ratelimit.Wait, ratelimit.Block} {
		_, err := f.decide("k", own(two), func(c *ratelimit.Call) { c.Mode = mode })
		require.ErrorIs(t, err, ratelimit.ErrCount)
	}
	require.Zero(t, f.decided(t, "k", own(two), func(c *ratelimit.Call) { c.Mode = ratelimit.Force }).Refused)
}

// TestOwnLimitsKeep: units that a call keeps are of its own limit, however many clauses the policy has.
func TestOwnLimitsKeep(t *testing.T) {
	f := open(t, main(t, "SW 100 60 FIXED TB 9 9 60 DEBT"))
	two := policy.FixedWindow(2, 60)
	keep := func(c *ratelimit.Call) { c.Keep.Units = 2 }
	_, err := f.decide("k", keep)
	require.ErrorIs(t, err, ratelimit.ErrKeepUnits)
	require.Equal(t, int64(1), f.decided(t, "k", own(two), keep).Refused)
	require.Zero(t, f.decided(t, "j", own(two)).Refused)
}
