package concurrency_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/limit"
	"github.com/stretchr/testify/require"
)

// t0 is the instant at which the tables start.
const t0 limit.Instant = 1_700_000_000_000_000_000

// key is one key of a store. It applies what Decide returns, with the natural expiry unless a
// test sets another.
type key struct {
	mode   concurrency.Mode
	value  []byte
	expiry limit.Instant
	// other is the memory that value does not use. The two are swapped.
	other []byte
}

// call does c at now, checks what is stored and returns the decision.
func (k *key) call(t require.TestingT, now limit.Instant, c *concurrency.Call) limit.Decision {
	var p concurrency.Plan
	k.plan(t, now, c, &p)
	return p.Decision
}

func (k *key) plan(t require.TestingT, now limit.Instant, c *concurrency.Call, p *concurrency.Plan) {
	if k.mode != concurrency.None && k.expiry <= now {
		*k = key{}
	}
	require.NoError(t, c.Validate())
	require.NoError(t, concurrency.Decide(k.mode, k.value, k.expiry, now, c, p))
	k.apply(p)
}

// apply applies p. value and other stay two separate pieces of memory.
func (k *key) apply(p *concurrency.Plan) {
	switch p.Action {
	case concurrency.Delete:
		*k = key{other: k.other}
	case concurrency.Store:
		value := p.Apply(k.value, k.other)
		if len(k.value) == 0 || &value[0] != &k.value[0] {
			k.other = k.value[:0]
		}
		k.mode, k.value, k.expiry = p.Mode, value, p.Expiry
	}
}

func acquire(member string, most int64, lease time.Duration) *concurrency.Call {
	return &concurrency.Call{Op: concurrency.Acquire, Member: []byte(member), Limit: most, Lease: lease}
}

func peek(member string, most int64, lease time.Duration) *concurrency.Call {
	c := acquire(member, most, lease)
	c.Peek = true
	return c
}

func release(member string) *concurrency.Call {
	return &concurrency.Call{Op: concurrency.Release, Member: []byte(member)}
}

func renew(member string, lease time.Duration) *concurrency.Call {
	return &concurrency.Call{Op: concurrency.Renew, Member: []byte(member), Lease: lease}
}

// inSeconds returns the five integers of a decision, with times rounded up.
func inSeconds(d limit.Decision) [5]int64 {
	return [5]int64{d.Refused, d.Limit, d.Remaining, limit.SecondsUp(d.RetryAfter), limit.SecondsUp(d.ResetAfter)}
}

// TestLeases is the worked example: two places, and leases of 10 s.
func TestLeases(t *testing.T) {
	const lease = 10 * time.Second
	var k key
	for _, row := range []struct {
		at   time.Duration
		call *concurrency.Call
		want [5]int64
	}{
		{0, acquire("a", 2, lease), [5]int64{0, 2, 1, -1, 10}},
		{4, acquire("b", 2, lease), [5]int64{0, 2, 0, -1, 10}},
		{5, acquire("c", 2, lease), [5]int64{1, 2, 0, 5, 9}},
		{5, acquire("a", 2, lease), [5]int64{0, 2, 0, -1, 10}},
		{6, release("b"), [5]int64{0, 0, 0, -1, 9}},
		{6, acquire("c", 2, lease), [5]int64{0, 2, 0, -1, 10}},
		{15, peek("d", 2, lease), [5]int64{0, 2, 1, -1, 1}},
		{15, release("a"), [5]int64{1, 0, 0, -1, 1}}, // expired at 15
		{15, renew("a", lease), [5]int64{1, 0, 0, -1, 1}},
		{15, renew("c", 2*time.Second), [5]int64{0, 0, 0, -1, 2}},
		{15, renew("c", time.Second), [5]int64{0, 0, 0, -1, 1}}, // earlier than before
		{15, peek("c", 2, lease), [5]int64{0, 2, 1, -1, 1}},
		{16, release("c"), [5]int64{1, 0, 0, -1, 0}},
	} {
		require.Equal(t, row.want, inSeconds(k.call(t, t0.Add(row.at*time.Second), row.call)), "%v at %v", row.call, row.at)
	}
	require.Equal(t, concurrency.None, k.mode, "the key is gone with its last lease")
}

// TestRetryCountsLeases: with a limit below the number of live leases, a place becomes free when
// enough leases have expired, not when the first one has.
func TestRetryCountsLeases(t *testing.T) {
	for _, members := range []int64{10, 200} {
		t.Run(fmt.Sprint(members), func(t *testing.T) {
			var k key
			for i := range members {
				d := k.call(t, t0, acquire(fmt.Sprint(i), members, time.Duration(i+1)*time.Second))
				require.Equal(t, members-i-1, d.Remaining)
			}
			for most := int64(1); most <= members; most++ {
				d := k.call(t, t0, acquire("x", most, time.Second))
				due := time.Duration(members-most+1) * time.Second
				require.Equal(t, limit.Decision{Refused: 1, Limit: most, RetryAfter: due, ResetAfter: time.Duration(members) * time.Second}, d)
				early := k.call(t, t0.Add(due-1), peek("x", most, time.Second))
				require.Equal(t, int64(1), early.Refused)
				require.Equal(t, time.Duration(1), early.RetryAfter)
				require.Equal(t, due == time.Second, k.call(t, t0.Add(due-1), peek("0", most, time.Second)).Allowed(), "a member that holds a lease passes")
				if due < time.Duration(members)*time.Second {
					require.True(t, k.call(t, t0.Add(due), peek("x", most, time.Second)).Allowed())
				}
			}
		})
	}
}

// TestExpiryOfTheKey: the key expires with the last lease, unless another expiry was set. A call
// that acquires sets it again, a release does not.
func TestExpiryOfTheKey(t *testing.T) {
	var k key
	k.call(t, t0, acquire("a", 3, 10*time.Second))
	k.call(t, t0, acquire("b", 3, 5*time.Second))
	require.Equal(t, t0.Add(10*time.Second), k.expiry)
	k.call(t, t0, release("a"))
	require.Equal(t, t0.Add(5*time.Second), k.expiry)
	k.call(t, t0, acquire("b", 3, 4*time.Second))
	require.Equal(t, t0.Add(4*time.Second), k.expiry, "a refresh may be earlier")
	k.call(t, t0, acquire("c", 3, 8*time.Second))

	k.expiry = t0.Add(time.Second)
	k.call(t, t0, release("b"))
	require.Equal(t, t0.Add(time.Second), k.expiry)
	k.call(t, t0, renew("c", 9*time.Second))
	require.Equal(t, t0.Add(9*time.Second), k.expiry)

	k.expiry = limit.MaxInstant
	require.Equal(t, [5]int64{0, 3, 3, -1, 0}, inSeconds(k.call(t, t0.Add(time.Hour), peek("c", 3, time.Second))), "an idle key that is kept")
	k.call(t, t0.Add(time.Hour), release("c"))
	require.Equal(t, concurrency.Leases, k.mode)
	k.call(t, t0.Add(time.Hour), acquire("d", 3, time.Second))
	require.Equal(t, t0.Add(time.Hour+time.Second), k.expiry)
	k.call(t, t0.Add(time.Hour), release("d"))
	require.Equal(t, concurrency.None, k.mode)
}

func TestPlans(t *testing.T) {
	var (
		k key
		p concurrency.Plan
	)
	k.plan(t, t0, acquire("a", 1, time.Second), &p)
	require.Equal(t, concurrency.Store, p.Action)
	require.Equal(t, concurrency.Leases, p.Mode)
	require.Equal(t, t0.Add(time.Second), p.Expiry)
	require.Equal(t, concurrency.Holds, p.Effect)
	require.Equal(t, "a", string(p.Member))
	require.Equal(t, t0.Add(time.Second), p.Until)
	for _, c := range []*concurrency.Call{acquire("b", 1, 1), peek("a", 1, 1), release("b"), renew("b", 1)} {
		k.plan(t, t0, c, &p)
		require.Equal(t, concurrency.Keep, p.Action)
		require.Equal(t, concurrency.Nothing, p.Effect)
		require.Equal(t, k.value, p.Apply(k.value, nil))
	}
	k.plan(t, t0, release("a"), &p)
	require.Equal(t, concurrency.Delete, p.Action)
	require.Equal(t, concurrency.Gone, p.Effect)
	for _, c := range []*concurrency.Call{peek("a", 1, 1), release("b"), renew("b", 1)} {
		k.plan(t, t0, c, &p)
		require.Equal(t, concurrency.Keep, p.Action)
	}
}

func TestMaxMembers(t *testing.T) {
	var (
		k key
		p concurrency.Plan
	)
	capped := func(member string, most int64) *concurrency.Call {
		c := acquire(member, most, time.Second)
		c.MaxMembers = 2
		return c
	}
	k.call(t, t0, capped("a", 5))
	k.call(t, t0, capped("b", 5))
	k.call(t, t0, capped("a", 5))
	for _, c := range []*concurrency.Call{capped("c", 5), capped("c", 3)} {
		require.ErrorIs(t, concurrency.Decide(k.mode, k.value, k.expiry, t0, c, &p), limit.ErrTooManyMembers)
		require.Equal(t, concurrency.Keep, p.Action)
		c.Peek = true
		require.ErrorIs(t, concurrency.Decide(k.mode, k.value, k.expiry, t0, c, &p), limit.ErrTooManyMembers)
	}
	require.Equal(t, int64(1), k.call(t, t0, capped("c", 2)).Refused, "the limit comes first")
	require.True(t, k.call(t, t0.Add(time.Second), capped("c", 5)).Allowed())
}

func TestUnknownMode(t *testing.T) {
	var p concurrency.Plan
	require.ErrorIs(t, concurrency.Decide(9, []byte("x"), t0, t0, acquire("a", 1, 1), &p), limit.ErrWrongType)
	require.Equal(t, concurrency.Keep, p.Action)
	require.Equal(t, "none leases mode 9", fmt.Sprint(concurrency.None, concurrency.Leases, concurrency.Mode(9)))
}

func TestValidate(t *testing.T) {
	long := strings.Repeat("m", concurrency.MaxMemberSize)
	for _, c := range []struct {
		call *concurrency.Call
		want error
	}{
		{acquire("", 1, 1), nil},
		{acquire(long, 1<<63-1, concurrency.MaxLease), nil},
		{renew(long, concurrency.MaxLease), nil},
		{release(long), nil},
		{acquire("a", -1, 1), concurrency.ErrRange},
		{acquire("a", 1, 0), concurrency.ErrRange},
		{acquire("a", 1, -1), concurrency.ErrRange},
		{renew("a", 0), concurrency.ErrRange},
		{acquire("a", 1, concurrency.MaxLease+1), concurrency.ErrLeaseTooLong},
		{renew("a", concurrency.MaxLease+1), concurrency.ErrLeaseTooLong},
		{acquire(long+"m", 1, 1), concurrency.ErrMemberTooLong},
		{release(long + "m"), concurrency.ErrMemberTooLong},
		{&concurrency.Call{Op: 3}, concurrency.ErrExclusive},
		{&concurrency.Call{Op: concurrency.Release, Peek: true}, concurrency.ErrExclusive},
		{&concurrency.Call{Op: concurrency.Renew, Lease: 1, Block: true}, concurrency.ErrExclusive},
		{&concurrency.Call{Limit: 1, Lease: 1, Peek: true, Block: true}, concurrency.ErrExclusive},
	} {
		require.Equal(t, c.want, c.call.Validate(), "%+v", c.call)
	}
}

func TestDescribe(t *testing.T) {
	describe := func(k *key, now limit.Instant) string {
		var b strings.Builder
		concurrency.Describe(k.mode, k.value, now, func(field string, value int64) { fmt.Fprintf(&b, "%s=%d ", field, value) })
		return b.String()
	}
	for _, members := range []int{3, 100} {
		var k key
		for i := range members {
			k.call(t, t0, acquire(fmt.Sprint(i), 100, time.Duration(i+1)*time.Second))
		}
		require.Equal(t, fmt.Sprintf("used=%d members=%d reset-ms=%d ", members, members, 1000*members), describe(&k, t0))
		require.Equal(t, fmt.Sprintf("used=%d members=%d reset-ms=%d ", members-2, members, 1000*members-2000), describe(&k, t0.Add(2*time.Second)))
		require.Equal(t, fmt.Sprintf("used=0 members=%d reset-ms=0 ", members), describe(&k, t0.Add(time.Hour)))
		require.Empty(t, describe(&key{}, t0))
	}
}

// TestLimitOfZero: a limit of zero refuses every call, also of a member that holds a lease. The
// lease stays until it expires.
func TestLimitOfZero(t *testing.T) {
	var k key
	never := limit.Decision{Refused: 1, RetryAfter: limit.NoRetry}
	require.Equal(t, never, k.call(t, t0, acquire("a", 0, time.Minute)))
	require.Equal(t, concurrency.None, k.mode)
	require.True(t, k.call(t, t0, acquire("a", 2, time.Minute)).Allowed())
	value := slices.Clone(k.value)
	never.ResetAfter = time.Minute
	for _, member := range []string{"a", "b"} {
		require.Equal(t, never, k.call(t, t0, acquire(member, 0, time.Hour)), member)
		look := acquire(member, 0, time.Hour)
		look.Peek = true
		require.Equal(t, never, k.call(t, t0, look), member)
	}
	require.Equal(t, value, k.value)
}
