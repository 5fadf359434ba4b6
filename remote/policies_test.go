package remote

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

const policyNow = limit.Instant(1_700_000_000_000_000_000)

// policiesOf returns the policies of rules, for three servers. Local decisions are noted, and
// answered as refused.
func policiesOf(rules map[string]string) (p *policies, local *[]decide.Ask) {
	local = new([]decide.Ask)
	o := Options{FailPolicies: rules, Servers: 3, Local: func(a *decide.Ask) {
		*local = append(*local, *a)
		a.Now, a.Decision, a.Refused, a.Err = policyNow+1, limit.Decision{Refused: 1, Limit: 7}, true, nil
		for i := range a.Details {
			a.Details[i].Refused = 1
		}
	}}
	return newPolicies(&o, func() limit.Instant { return policyNow }, func(key []byte) int64 { return 0x01020300 + int64(len(key)) }), local
}

func quota(t *testing.T, burst, count, period int64) gcra.Quota {
	t.Helper()
	q, err := gcra.NewQuota(burst, count, period)
	require.NoError(t, err)
	return q
}

// asksOf returns one ask of each family, all about key.
func asksOf(t *testing.T, key string) map[string]*decide.Ask {
	t.Helper()
	k := []byte(key)
	q := quota(t, 29, 10, 1)
	w := slidingwindow.Call{Limit: 30, Window: time.Minute, Quantity: 1, Mode: slidingwindow.Counter}
	b := tokenbucket.Call{Capacity: 30, Init: 30, Count: 10, Period: time.Second, Interval: 100 * time.Millisecond, Quantity: 1}
	l := concurrency.Call{Member: []byte("m"), Limit: 30, Lease: time.Minute}
	release, renew := l, l
	release.Op, release.Limit = concurrency.Release, 0
	renew.Op, renew.Limit = concurrency.Renew, 0
	return map[string]*decide.Ask{
		"cell":    {Key: k, Family: decide.Cell, Quota: q, Quantity: 1},
		"window":  {Key: k, Family: decide.Window, Window: w},
		"bucket":  {Key: k, Family: decide.Bucket, Bucket: b},
		"cancel":  {Key: k, Family: decide.Cancel, Bucket: b},
		"acquire": {Key: k, Family: decide.Lease, Lease: l},
		"release": {Key: k, Family: decide.Lease, Lease: release},
		"renew":   {Key: k, Family: decide.Lease, Lease: renew},
		"several": {
			Family: decide.Several, Details: make([]limit.Decision, 4),
			Clauses: []decide.Clause{{Key: k, Quota: &q, Quantity: 1}, {Key: k, Window: &w}, {Key: k, Bucket: &b}, {Key: k, Lease: &l}},
		},
		"admin": {Key: k, Family: decide.Admin, Admin: decide.AdminCall{Op: decide.Delete}},
	}
}

func TestPolicyClosedAnswersWithAnError(t *testing.T) {
	p, local := policiesOf(nil)
	for name, a := range asksOf(t, "a") {
		p.answer(a, "timeout")
		require.Equal(t, decide.Unavailable("the store does not answer: timeout"), a.Err, name)
		require.Equal(t, policyNow, a.Now)
	}
	require.Empty(t, *local)
	require.True(t, p.closed([]byte("a")))
	require.Equal(t, []PolicyCount{{Closed, "timeout", 9}}, p.counts())
}

func TestPolicyOpenAdmits(t *testing.T) {
	p, _ := policiesOf(map[string]string{"": Opened})
	whole := limit.Decision{Limit: 30, Remaining: 30, RetryAfter: limit.NoRetry}
	for name, a := range asksOf(t, "a") {
		p.answer(a, "LOADING")
		switch name {
		case "admin":
			require.Error(t, a.Err)
			continue
		case "several":
			require.Equal(t, []limit.Decision{whole, whole, whole, whole}, a.Details)
		case "release", "renew":
			require.Equal(t, limit.Decision{RetryAfter: limit.NoRetry}, a.Decision, name)
		case "cancel":
		default:
			require.Equal(t, whole, a.Decision, name)
		}
		require.NoError(t, a.Err, name)
		require.False(t, a.Refused)
		require.Equal(t, policyNow, a.Now)
	}
	require.False(t, p.closed([]byte("a")))
	require.Equal(t, []PolicyCount{{Closed, "LOADING", 1}, {Opened, "LOADING", 8}}, p.counts())
}

func TestPolicyOpenKeepsABan(t *testing.T) {
	p, _ := policiesOf(map[string]string{"": Opened})
	ban := quota(t, -1, 1, 1)
	a := &decide.Ask{Key: []byte("a"), Family: decide.Cell, Quota: ban, Quantity: 1}
	p.answer(a, "timeout")
	require.Positive(t, a.Decision.Refused)
	a = &decide.Ask{Family: decide.Several, Details: make([]limit.Decision, 1), Clauses: []decide.Clause{{Quota: &ban, Quantity: 1}}}
	p.answer(a, "timeout")
	require.True(t, a.Refused)
	require.Positive(t, a.Details[0].Refused)
}

// TestPolicyOpenKeepsALimitOfZero: it denies every quantity, and accepts refunds.
func TestPolicyOpenKeepsALimitOfZero(t *testing.T) {
	p, _ := policiesOf(map[string]string{"": Opened})
	w := slidingwindow.Call{Window: time.Minute, Quantity: 1, Mode: slidingwindow.Counter, Charge: slidingwindow.Force}
	b := tokenbucket.Call{Count: 1, Period: time.Second, Interval: time.Second, Quantity: 1}
	l := concurrency.Call{Member: []byte("m"), Lease: time.Minute}
	denied := limit.Decision{Refused: 1, RetryAfter: limit.NoRetry}
	for name, a := range map[string]*decide.Ask{
		"window":  {Family: decide.Window, Window: w},
		"bucket":  {Family: decide.Bucket, Bucket: b},
		"acquire": {Family: decide.Lease, Lease: l},
	} {
		p.answer(a, "timeout")
		require.Equal(t, denied, a.Decision, name)
	}
	clauses := []decide.Clause{{Window: &w}, {Bucket: &b}, {Lease: &l}}
	a := &decide.Ask{Family: decide.Several, Clauses: clauses, Details: make([]limit.Decision, 3)}
	p.answer(a, "timeout")
	require.True(t, a.Refused)
	require.Equal(t, []limit.Decision{denied, denied, denied}, a.Details)
	w.Quantity, b.Quantity, l.Peek = -1, -1, true
	p.answer(a, "timeout")
	require.False(t, a.Refused)
}

func TestPolicyLocalDecidesWithAShare(t *testing.T) {
	p, local := policiesOf(map[string]string{"": Local})
	for name, a := range asksOf(t, "key") {
		*local = nil
		a.Keep = 4
		before := *a
		p.answer(a, "refused")
		if name == "admin" {
			require.Error(t, a.Err)
			require.Empty(t, *local)
			continue
		}
		require.NoError(t, a.Err, name)
		require.Len(t, *local, 1, name)
		got := (*local)[0]
		require.Equal(t, before.Window, a.Window, "what was asked is left alone")
		require.Equal(t, before.Bucket, a.Bucket)
		require.EqualValues(t, 4, a.Keep)
		require.EqualValues(t, 2, got.Keep)
		switch name {
		case "release", "renew":
			require.Zero(t, a.Decision.Refused, "who holds a lease in the engine goes on")
		case "several":
			require.True(t, a.Refused)
			require.EqualValues(t, 1, a.Details[2].Refused)
			c := got.Clauses
			require.EqualValues(t, 10, c[0].Quota.Limit())
			require.EqualValues(t, 10, c[1].Window.Limit)
			require.EqualValues(t, 10, c[2].Bucket.Capacity)
			require.EqualValues(t, 10, c[3].Lease.Limit)
			require.Zero(t, c[3].Keep)
			require.EqualValues(t, 30, a.Clauses[0].Quota.Limit())
			require.EqualValues(t, 30, a.Clauses[1].Window.Limit)
			require.EqualValues(t, 30, a.Clauses[2].Bucket.Capacity)
			require.EqualValues(t, 30, a.Clauses[3].Lease.Limit)
			require.Equal(t, "\x01\x02\x03\x03key", string(c[1].Key))
			continue
		case "cell":
			require.EqualValues(t, 10, got.Quota.Limit())
			require.Equal(t, 300*time.Millisecond, got.Quota.Interval())
		case "window":
			require.EqualValues(t, 10, got.Window.Limit)
			require.Equal(t, time.Minute, got.Window.Window)
		case "bucket":
			require.EqualValues(t, 10, got.Bucket.Capacity)
			require.EqualValues(t, 10, got.Bucket.Init)
			require.Equal(t, 300*time.Millisecond, got.Bucket.Interval)
			require.EqualValues(t, 3, got.Bucket.Count)
			require.Equal(t, 900*time.Millisecond, got.Bucket.Period)
		case "acquire":
			require.EqualValues(t, 10, got.Lease.Limit)
			require.EqualValues(t, 1, a.Decision.Refused)
		}
		require.Equal(t, "\x01\x02\x03\x03key", string(got.Key))
		require.Equal(t, policyNow+1, a.Now)
	}
}

func TestShareIsAtLeastOne(t *testing.T) {
	q := quota(t, 1, 1, 1)
	mine := q.Share(5)
	require.EqualValues(t, 1, mine.Limit())
	require.Equal(t, 5*time.Second, mine.Interval())
	ban := quota(t, -1, 1, 1)
	mine = ban.Share(5)
	require.Zero(t, mine.Limit(), "a ban is one for everybody")
	w := slidingwindow.Call{Limit: 2}
	shareWindow(&w, 5)
	require.EqualValues(t, 1, w.Limit)
	w.Limit = 0
	shareWindow(&w, 5)
	require.Zero(t, w.Limit, "0 denies everywhere")
	none := tokenbucket.Call{Count: 2, Period: time.Second, Interval: time.Second / 2}
	shareBucket(&none, 5)
	require.Zero(t, none.Capacity)
	require.NoError(t, none.Validate())
	require.Zero(t, shareClauses([]decide.Clause{{Lease: &concurrency.Call{}}}, 5)[0].Lease.Limit)
	b := tokenbucket.Call{Capacity: 2, Init: 1, Count: 2, Period: time.Second, Interval: time.Second / 2}
	shareBucket(&b, 5)
	require.Equal(t, tokenbucket.Call{Capacity: 1, Init: 0, Count: 1, Period: 2500 * time.Millisecond, Interval: 2500 * time.Millisecond}, b)
	b = tokenbucket.Call{Capacity: 2, Init: 2, Count: 1, Period: 1 << 61, Interval: 1 << 61}
	shareBucket(&b, 5)
	require.NoError(t, b.Validate())
	require.EqualValues(t, 1<<61, b.Interval, "a rate beyond what can be calculated stays")
}

func TestLongestPrefixChoosesThePolicy(t *testing.T) {
	p, _ := policiesOf(map[string]string{"": Opened, "a": Local, "ab": Closed, "abc": Opened})
	for key, want := range map[string]string{
		"": Opened, "b": Opened, "a": Local, "aa": Local, "ab": Closed, "abd": Closed, "abc": Opened, "abcd": Opened,
	} {
		require.Equal(t, want, p.of([]byte(key)), key)
	}
	clause := func(keys ...string) *decide.Ask {
		a := &decide.Ask{Family: decide.Several}
		for _, k := range keys {
			a.Clauses = append(a.Clauses, decide.Clause{Key: []byte(k)})
		}
		return a
	}
	require.Equal(t, Opened, p.forAsk(clause("b", "abc")))
	require.Equal(t, Local, p.forAsk(clause("b", "a")))
	require.Equal(t, Closed, p.forAsk(clause("b", "a", "ab")))
	p, _ = policiesOf(map[string]string{"x": Opened})
	require.Equal(t, Closed, p.of([]byte("y")))
}

func TestOptionsAreChecked(t *testing.T) {
	for want, o := range map[string]Options{
		"named by a URL":   {URL: "host:1"},
		"unknown policy":   {URL: "valkey://a", FailPolicies: map[string]string{"": "half"}},
		"needs a keyspace": {URL: "valkey://a", FailPolicies: map[string]string{"x": Local}},
		"hot keys":         {URL: "valkey://a", HotKeys: map[string]string{"": "warm"}},
		"across slots":     {URL: "valkey://a", MultiAcross: "both"},
		"CA of the store":  {URL: "valkeys://a?ca=/no/such/file"},
	} {
		_, err := Open(o)
		require.ErrorContains(t, err, want)
	}
}

// TestPoliciesChange while the engine is unreachable: the new policies answer the next ask.
func TestPoliciesChange(t *testing.T) {
	p, local := policiesOf(map[string]string{"": Closed})
	ask := func() *decide.Ask {
		a := asksOf(t, "k")["cell"]
		p.answer(a, late)
		return a
	}
	require.Error(t, ask().Err)
	p.set(map[string]string{"": Opened})
	a := ask()
	require.NoError(t, a.Err)
	require.Zero(t, a.Decision.Refused)
	require.False(t, p.closed([]byte("k")))
	p.set(map[string]string{"": Local, "other": Closed})
	require.NoError(t, ask().Err)
	require.Len(t, *local, 1)
	require.True(t, p.closed([]byte("other")))
	p.set(nil)
	require.Error(t, ask().Err, "closed is the default")
}
