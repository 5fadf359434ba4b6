package ratelimit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/ratelimit/hotkeys"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/stats"
)

const start = limit.Instant(1_700_000_000e9)

// front is a front without a protocol: it decides calls at once on a keyspace in memory. It is the
// [hotkeys.Caller] of its calls.
type front struct {
	*ratelimit.Decider
	store   *keyspace.Handle
	clock   *clocktest.Clock
	keys    *hotkeys.Keys
	table   *policy.Table
	service *ratelimit.Service
	ask     decide.Ask // a used one: no field of an earlier call may matter
}

func (f *front) Table() *policy.Table { return f.table }

func (f *front) Volatile() bool     { return false }
func (f *front) Now() limit.Instant { return f.store.Now() }

func (f *front) Describe(d *hotkeys.Detail, _ decide.Family) {
	d.Client, d.Command = 7, "front"
	d.Add([]byte("api"))
	d.EndLimit()
}

// open returns a front for the policies of entries.
func open(t testing.TB, entries ...policy.Entry) *front {
	t.Helper()
	f := &front{clock: clocktest.New(start), table: tableOf(t, entries)}
	ks := keyspace.New(keyspace.Options{Clock: f.clock})
	t.Cleanup(ks.Close)
	f.store = ks.NewHandle()
	t.Cleanup(f.store.Close)
	f.store.Refresh()
	each := func(do func(*hotkeys.Recorder)) limit.Instant {
		do(f.Decider.Recorder)
		return start
	}
	f.keys = hotkeys.New(stats.GroupOptions{Delimiter: ":", Max: 10}, each, func(int64) {})
	service := &ratelimit.Service{
		Policies: f,
		Bounds:   func() policy.Bounds { return policy.Bounds{LogMaxEntries: 100, MaxMembers: 100} },
		Keys:     f.keys,
	}
	f.service, f.Decider = service, service.NewDecider(f.store)
	return f
}

// tableOf returns the policies with the entries.
func tableOf(t testing.TB, entries []policy.Entry) *policy.Table {
	b := policy.NewBuilder(policy.Sizes{})
	for i := range entries {
		if e := &entries[i]; e.Until == 0 {
			e.Until = limit.MaxInstant
		}
		require.NoError(t, b.Set(&entries[i]))
	}
	return b.Table()
}

// main returns the entry of a policy called api.
func main(t testing.TB, clauses string) policy.Entry {
	t.Helper()
	return policy.Entry{Policy: "api", Limits: limits(t, clauses)}
}

// forKey returns an entry of the kind for the pattern in the policy called api.
func forKey(kind policy.Kind, pattern string) policy.Entry {
	return policy.Entry{Kind: kind, Policy: "api", Pattern: pattern, Until: start.Add(time.Minute)}
}

func limits(t testing.TB, clauses string) *policy.Limits {
	t.Helper()
	var words [][]byte
	for _, w := range strings.Fields(clauses) {
		words = append(words, []byte(w))
	}
	l, err := policy.ParseLimits(words, false, policy.Bounds{})
	require.Empty(t, err)
	return l
}

// decide decides a call about key, changed by with, and returns the answer.
func (f *front) decide(key string, with ...func(*ratelimit.Call)) (ratelimit.Answer, error) {
	l := ratelimit.Lookup{Call: f.call(key)}
	for _, w := range with {
		w(&l.Call)
	}
	if err := f.Find(&l); err != nil {
		return ratelimit.Answer{}, err
	}
	return f.Decide(&l, &f.ask)
}

// call returns a call about key.
func (f *front) call(key string) ratelimit.Call {
	return ratelimit.Call{Policy: []byte("api"), Key: []byte(key), Quantity: 1, Now: f.store.Now(), From: f}
}

func (f *front) decided(t *testing.T, key string, with ...func(*ratelimit.Call)) limit.Decision {
	t.Helper()
	a, err := f.decide(key, with...)
	require.NoError(t, err)
	return *a.Decision
}

func quantity(n int64) func(*ratelimit.Call) { return func(c *ratelimit.Call) { c.Quantity = n } }
func quantities(n ...int64) func(*ratelimit.Call) {
	return func(c *ratelimit.Call) { c.SetQuantities(n) }
}
func mode(m ratelimit.Mode) func(*ratelimit.Call) { return func(c *ratelimit.Call) { c.Mode = m } }
func member(m string) func(*ratelimit.Call)       { return func(c *ratelimit.Call) { c.Member = []byte(m) } }

// TestOneClause: each family decides in each of the modes that it has.
func TestOneClause(t *testing.T) {
	for _, clauses := range []string{"CL 1 1 60", "SW 2 60 FIXED", "TB 2 1 60"} {
		f := open(t, main(t, clauses))
		require.Equal(t, int64(2), f.decided(t, "k", mode(ratelimit.Peek)).Remaining, clauses)
		require.Equal(t, int64(1), f.decided(t, "k").Remaining, clauses)
		require.Equal(t, int64(2), f.decided(t, "k", quantity(3), mode(ratelimit.Partial)).Refused, clauses)
		d := f.decided(t, "k")
		require.Equal(t, int64(1), d.Refused, clauses)
		require.Positive(t, d.RetryAfter, clauses)
		require.Zero(t, f.decided(t, "k", mode(ratelimit.Force)).Refused, clauses)
		require.Zero(t, f.decided(t, "k", quantity(-2)).Refused, clauses)
		require.Equal(t, int64(1), f.decided(t, "k", quantity(0)).Remaining, clauses)
	}
	f := open(t, main(t, "CC 1 60"))
	require.Zero(t, f.decided(t, "k", member("a")).Refused)
	require.Equal(t, int64(1), f.decided(t, "k", member("b")).Refused)
	require.Zero(t, f.decided(t, "k", member("b"), quantity(-1)).Refused, "a return needs no place")
}

// TestSeveralClauses: the answer is that of the binding clause, with the decision on each, and all are
// charged or none.
func TestSeveralClauses(t *testing.T) {
	f := open(t, main(t, "SW 1 60 FIXED TB 10 1 1"))
	a, err := f.decide("k")
	require.NoError(t, err)
	require.Len(t, a.Details, 2)
	require.Equal(t, a.Decision.Limit, a.Details[0].Limit)
	a, err = f.decide("k")
	require.NoError(t, err)
	require.Equal(t, int64(1), a.Decision.Refused)
	require.Equal(t, []int64{1, 0}, []int64{a.Details[0].Refused, a.Details[1].Refused})
	require.Equal(t, int64(9), a.Details[1].Remaining, "the second clause was not charged")
	a, err = f.decide("other", quantity(0))
	require.NoError(t, err)
	require.Equal(t, int64(1), a.Decision.Remaining)
}

// TestEntriesApply: overrides, boosts, blocks, exemptions and shadow policies do what they say, and
// the counters of the policy count each.
func TestEntriesApply(t *testing.T) {
	override, boost := forKey(policy.Override, "big"), forKey(policy.Boost, "boosted")
	override.Limits, boost.Factor = limits(t, "SW 5 60 FIXED SW 9 60 FIXED"), 3000
	f := open(t, main(t, "SW 1 60 FIXED"), override, boost, forKey(policy.Block, "blocked"), forKey(policy.Exempt, "exempt"))
	require.Equal(t, int64(5), f.decided(t, "big").Limit)
	require.Equal(t, int64(3), f.decided(t, "boosted").Limit)

	a, err := f.decide("blocked")
	require.NoError(t, err)
	want := limit.Decision{Refused: 1, Limit: 1, RetryAfter: time.Minute, ResetAfter: time.Minute}
	require.Equal(t, ratelimit.Answer{Decision: &want, Details: []limit.Decision{want}}, a)
	require.Zero(t, f.decided(t, "blocked", quantity(-1)).Refused, "a block does not refuse a return")

	for range 3 {
		require.Zero(t, f.decided(t, "exempt").Refused)
	}
	n := f.table.Policy([]byte("api")).Counts
	require.Equal(t, []int64{5, 1, 3, 2, 1}, []int64{
		n.Allowed.Load(), n.Denied.Load(), n.Exempted.Load(), n.ExemptedDenied.Load(), n.Blocked.Load(),
	})

	shadow := main(t, "SW 1 60 FIXED TB 1 1 60")
	shadow.Shadow = true
	f = open(t, shadow)
	for i := range 3 {
		a, err := f.decide("k")
		require.NoError(t, err)
		require.Zero(t, a.Decision.Refused)
		require.Equal(t, limit.NoRetry, a.Decision.RetryAfter)
		require.Equal(t, i > 0, a.Details[1].Refused > 0, "which says what would have been")
	}
	require.EqualValues(t, 2, f.table.Policy([]byte("api")).Counts.ShadowDenied.Load())
}

// remaining returns what each clause of an answer has left.
func remaining(a ratelimit.Answer) (n []int64) {
	for i := range a.Details {
		n = append(n, a.Details[i].Remaining)
	}
	return n
}

// TestClauseThatCountsCalls: a clause with CALLS counts one unit for a call that charges, in every
// mode, and none for a call that returns units or looks.
func TestClauseThatCountsCalls(t *testing.T) {
	f := open(t, main(t, "SW 3 60 FIXED CALLS TB 10 1 60"))
	for _, step := range []struct {
		with    []func(*ratelimit.Call)
		refused int64
		left    []int64
	}{
		{[]func(*ratelimit.Call){quantity(4)}, 0, []int64{2, 6}},
		{[]func(*ratelimit.Call){quantity(-2)}, 0, []int64{2, 8}},
		{[]func(*ratelimit.Call){quantity(20), mode(ratelimit.Partial)}, 12, []int64{1, 0}},
		{[]func(*ratelimit.Call){quantity(0)}, 0, []int64{1, 0}},
		{[]func(*ratelimit.Call){quantity(1), mode(ratelimit.Partial)}, 1, []int64{1, 0}},
		{[]func(*ratelimit.Call){quantity(-5)}, 0, []int64{1, 5}},
		{[]func(*ratelimit.Call){quantities(0, 2), mode(ratelimit.Force)}, 0, []int64{1, 3}},
		{[]func(*ratelimit.Call){quantity(9), mode(ratelimit.Force)}, 0, []int64{0, 0}},
		{[]func(*ratelimit.Call){quantity(-10)}, 0, []int64{0, 4}},
		{[]func(*ratelimit.Call){quantity(2), mode(ratelimit.Partial)}, 2, []int64{0, 4}},
		{[]func(*ratelimit.Call){quantities(0, 2)}, 0, []int64{0, 2}},
		{[]func(*ratelimit.Call){quantities(7, 1)}, 1, []int64{0, 2}},
	} {
		a, err := f.decide("k", step.with...)
		require.NoError(t, err)
		require.Equal(t, step.refused, a.Decision.Refused, step.left)
		require.Equal(t, step.left, remaining(a))
	}
	alone := open(t, main(t, "TB 2 1 60 CALLS"))
	require.Equal(t, int64(1), alone.decided(t, "k", quantity(1000)).Remaining)
	require.Equal(t, int64(1), alone.decided(t, "k", quantity(-1000)).Remaining)
	require.Zero(t, alone.decided(t, "k", quantity(5), mode(ratelimit.Partial)).Refused)
	require.Equal(t, int64(1), alone.decided(t, "k", quantity(5), mode(ratelimit.Partial)).Refused)
}

// TestQuantitiesOfClauses: a call may have a quantity for each clause. That of a concurrency limit is a
// number of places.
func TestQuantitiesOfClauses(t *testing.T) {
	f := open(t, main(t, "SW 9 60 FIXED TB 9 1 60 CC 5 30"))
	a, err := f.decide("k", quantities(1, 4, 3), member("a"))
	require.NoError(t, err)
	require.Equal(t, []int64{8, 5, 2}, remaining(a))
	a, err = f.decide("k", quantities(1, 1, 3), member("b"))
	require.NoError(t, err)
	require.Equal(t, int64(1), a.Decision.Refused)
	require.Equal(t, []int64{8, 5, 2}, remaining(a), "all or none")
	a, err = f.decide("k", quantities(-1, 2, 0))
	require.NoError(t, err, "a call that takes no place needs no member")
	require.Equal(t, []int64{9, 3, 2}, remaining(a))
	a, err = f.decide("k", quantities(1, 1, -1))
	require.NoError(t, err)
	require.Equal(t, []int64{8, 2, 2}, remaining(a), "places are not returned by a quantity")
	a, err = f.decide("k", quantities(0, 30, 3), member("b"), mode(ratelimit.Force))
	require.NoError(t, err)
	require.Zero(t, a.Decision.Refused)
	require.Equal(t, []int64{8, 0, 0}, remaining(a), "FORCE takes places beyond the limit, too")
	a, err = f.decide("k", member("a"), mode(ratelimit.Force))
	require.NoError(t, err)
	require.Equal(t, []int64{7, 0, 0}, remaining(a), "one quantity leaves a member the places that it holds")
	a, err = f.decide("k", quantities(0, 0, 1), member("a"), mode(ratelimit.Force))
	require.NoError(t, err)
	require.Equal(t, []int64{7, 0, 1}, remaining(a))
	_, err = f.decide("k", quantities(0, 0, concurrency.MaxPlaces+1), member("a"))
	require.ErrorIs(t, err, ratelimit.ErrPlaces)
}

// TestQuantitiesHaveToFit: a call with another number of quantities than the limits have clauses is an
// error. A block denies it all the same, and a candidate that it does not fit does not try it.
func TestQuantitiesHaveToFit(t *testing.T) {
	candidate := policy.Entry{Kind: policy.Candidate, Policy: "api", Limits: limits(t, "SW 1 60")}
	f := open(t, main(t, "SW 1 60 TB 9 1 60"), candidate, forKey(policy.Block, "blocked"))
	require.Zero(t, f.decided(t, "k", quantities(1, 1)).Refused)
	require.Zero(t, f.table.Policy([]byte("api")).Counts.TryBoth.Load())
	require.Equal(t, int64(1), f.decided(t, "blocked", quantities(1, 1, 1)).Refused)
	_, err := f.decide("k", quantities(1, 1, 1))
	require.ErrorIs(t, err, ratelimit.ErrQuantities)
	call := f.call("k")
	call.SetQuantities([]int64{1, 1, 1})
	_, err = f.Explain(call)
	require.ErrorIs(t, err, ratelimit.ErrQuantities)
	call.SetQuantities([]int64{1, 9})
	e, err := f.Explain(call)
	require.NoError(t, err)
	require.False(t, e.Tries())
	require.Contains(t, e.Sentence(), `1 9 for "k" is denied: `)
}

// TestCandidateIsTried: a candidate decides the same calls on its own state and changes no answer.
func TestCandidateIsTried(t *testing.T) {
	candidate := policy.Entry{Kind: policy.Candidate, Policy: "api", Limits: limits(t, "SW 1 60 FIXED TB 9 1 1")}
	f := open(t, main(t, "SW 2 60 FIXED TB 9 1 1"), candidate)
	for i, refused := range []int64{0, 0, 1} {
		a, err := f.decide("k")
		require.NoError(t, err)
		require.Equal(t, refused, a.Decision.Refused, i)
		require.Equal(t, int64(2), a.Details[0].Limit, "the details are those of the limits in force")
	}
	f.decided(t, "k", mode(ratelimit.Peek))
	n := f.table.Policy([]byte("api")).Counts
	require.Equal(t, []int64{1, 1, 0, 1}, []int64{n.TryBoth.Load(), n.TryOnlyOld.Load(), n.TryOnlyNew.Load(), n.TryNeither.Load()})
}

// TestDatabases: the state of the limits and that of a candidate are in the database of the call.
func TestDatabases(t *testing.T) {
	candidate := policy.Entry{Kind: policy.Candidate, Policy: "api", Limits: limits(t, "SW 1 60 FIXED")}
	f := open(t, main(t, "SW 2 60 FIXED"), candidate)
	in3 := func(c *ratelimit.Call) { c.DB = 3 }
	f.decided(t, "k", in3)
	require.Equal(t, []int{0, 2}, []int{f.store.Len(0), f.store.Len(3)})
	call := f.call("k")
	call.DB = 3
	e, err := f.Explain(call)
	require.NoError(t, err)
	require.Equal(t, int64(1), e.Clauses[0].Decision.Remaining)
	require.Equal(t, int64(1), e.Candidate[0].Decision.Refused)
}

// TestBlockDoesNotWait: without a client that can be parked, a call in the mode Block is denied if
// there is no room. AskToWait reserves tokens for a client that is parked.
func TestBlockDoesNotWait(t *testing.T) {
	f := open(t, main(t, "TB 1 1 60"))
	for i, refused := range []int64{0, 1, 1} {
		require.Equal(t, refused, f.decided(t, "k", mode(ratelimit.Block)).Refused, i)
	}
	l := ratelimit.Lookup{Call: f.call("k")}
	l.Mode = ratelimit.Block
	require.NoError(t, f.Find(&l))
	require.True(t, l.Waits())
	require.NoError(t, f.AskToWait(&l, &f.ask))
	f.store.Decide(&f.ask)
	require.Equal(t, time.Minute, f.ask.Decision.RetryAfter)
	require.Zero(t, f.ask.Decision.Refused)
}

// TestVolatileKeys: the keys of a volatile call, and more keys than a batch keeps, stay what they are
// while their calls are decided.
func TestVolatileKeys(t *testing.T) {
	f := open(t, main(t, "SW 1 60 FIXED SW 1 60 FIXED"))
	volatile := func(c *ratelimit.Call) { c.Volatile = true }
	long := strings.Repeat("x", 10_000)
	for i := range 20 {
		key := long + string(rune('a'+i))
		require.Zero(t, f.decided(t, key).Refused, i)
		require.Zero(t, f.decided(t, key+"!", volatile).Refused, i)
		require.Equal(t, int64(1), f.decided(t, key).Refused, i)
	}
	f.EndBatch(f.store.Now())
	require.Equal(t, 80, f.store.Len(0))
}

// TestErrors: a call that a policy does not support is an error, and charges nothing.
func TestErrors(t *testing.T) {
	lease, debt := open(t, main(t, "SW 5 60 CC 1 60")), open(t, main(t, "TB 5 1 1 DEBT"))
	log := main(t, "SW 100 60 LOG")
	tooLong := open(t, log)
	tooLong.table = func() *policy.Table {
		b := policy.NewBuilder(policy.Sizes{})
		entry := main(t, "SW 1000 60 LOG")
		entry.Until = limit.MaxInstant
		require.NoError(t, b.Set(&entry))
		return b.Table()
	}()
	for _, c := range []struct {
		f    *front
		want error
		with []func(*ratelimit.Call)
	}{
		{lease, ratelimit.ErrNoMember, nil},
		{lease, ratelimit.ErrQuantities, []func(*ratelimit.Call){member("m"), quantities(1, 1, 1)}},
		{lease, concurrency.ErrMemberTooLong, []func(*ratelimit.Call){member(strings.Repeat("m", concurrency.MaxMemberSize+1))}},
		{debt, ratelimit.ErrPartial, []func(*ratelimit.Call){mode(ratelimit.Partial)}},
		{debt, limit.ErrOverflow, []func(*ratelimit.Call){quantity(1 << 62)}},
		{debt, ratelimit.ErrNoPolicy, []func(*ratelimit.Call){func(c *ratelimit.Call) { c.Policy = []byte("none") }}},
		{tooLong, nil, nil},
	} {
		_, err := c.f.decide("k", c.with...)
		if c.want == nil {
			require.Error(t, err)
			continue
		}
		require.ErrorIs(t, err, c.want)
		require.Zero(t, c.f.store.Len(0))
	}
	none := open(t)
	none.Decider = (&ratelimit.Service{Keys: none.keys}).NewDecider(none.store)
	_, err := none.decide("k")
	require.ErrorIs(t, err, ratelimit.ErrNoPolicy)
}

// TestExplain: an explanation has the answer that the call would get, and changes nothing.
func TestExplain(t *testing.T) {
	block := forKey(policy.Block, "bad")
	block.Comment = "abuse"
	f := open(t, main(t, "SW 2 60 FIXED CC 1 60"), block)
	f.decided(t, "k", member("m"))
	two := f.call("k")
	two.Quantity = 2
	e, err := f.Explain(two)
	require.NoError(t, err)
	require.Equal(t, int64(1), e.Decision.Refused)
	require.Equal(t, "api:k#2", string(e.Clauses[1].State))
	require.Equal(t, `2 for "k" is denied: the limits of policy api apply; SW 2 60 FIXED: 1 of 2 used, passes in 40s; CC 1 60: 1 of 1 used, passes in 1m0s`, e.Sentence())
	e, err = f.Explain(f.call("bad"))
	require.NoError(t, err)
	require.Equal(t, time.Minute, e.Decision.RetryAfter)
	require.Contains(t, e.Sentence(), `1 for "bad" is denied: block "bad" applies (abuse); `)
	n := f.table.Policy([]byte("api")).Counts
	require.EqualValues(t, 1, n.Allowed.Load()+n.Denied.Load()+n.Blocked.Load())
}

// TestKeysAreRecorded: the calls of any front are in the statistics of keys, with their caller.
func TestKeysAreRecorded(t *testing.T) {
	f := open(t, main(t, "SW 1 60 FIXED"))
	for range 5 {
		f.decided(t, "k")
		f.EndBatch(f.store.Now())
	}
	seen := f.keys.Seen(hotkeys.Denied, start)
	require.Len(t, seen.Keys, 1)
	require.Equal(t, "api:k", seen.Keys[0].Key)
	require.EqualValues(t, 4, seen.Keys[0].Count)
	require.Equal(t, []int64{7}, seen.Keys[0].Clients)
	require.Equal(t, "front", seen.Keys[0].Command)
	groups := f.keys.Groups().Snapshot()
	require.Len(t, groups, 1)
	require.Equal(t, []int64{5, 4}, []int64{groups[0].Calls, groups[0].Denied})
}

// TestReservation: what a reservation asks for. It is about all clauses even if there is one, and the time of
// a place is that of the reservation.
func TestReservation(t *testing.T) {
	reserve := func(c *ratelimit.Call) {
		c.ID = idempotency.Call{Token: []byte("r"), TTL: time.Minute, Max: 9}
		c.Reserve = reservation.Terms{TTL: 5 * time.Second, Max: 3}
	}
	ask := func(f *front, with ...func(*ratelimit.Call)) error {
		l := ratelimit.Lookup{Call: f.call("k")}
		reserve(&l.Call)
		for _, w := range with {
			w(&l.Call)
		}
		require.NoError(t, f.Find(&l))
		return f.Ask(&l, &f.ask)
	}
	f := open(t, main(t, "TB 9 1 60"))
	require.NoError(t, ask(f))
	require.Equal(t, decide.Several, f.ask.Family)
	require.Equal(t, reservation.Terms{TTL: 5 * time.Second, Max: 3}, f.ask.Reserve)
	fingerprint := f.ask.ID.Print
	require.NoError(t, ask(f, func(c *ratelimit.Call) { c.Reserve.TTL = 6 * time.Second }))
	require.NotEqual(t, fingerprint, f.ask.ID.Print, "another ttl is another argument")
	require.NoError(t, ask(f, func(c *ratelimit.Call) { c.Reserve.TTL = 0 }))
	require.Equal(t, decide.Bucket, f.ask.Family)
	require.Zero(t, f.ask.Reserve.TTL)
	require.NoError(t, ask(f, func(c *ratelimit.Call) { c.ID.Token, c.Reserve.TTL = nil, 0 }))
	require.Zero(t, f.ask.Reserve.TTL)

	f = open(t, main(t, "SW 9 60 CALLS TB 9 1 60 CC 9 60"))
	require.NoError(t, ask(f, quantity(4)))
	lease := f.ask.Clauses[2].Lease
	require.Equal(t, "r", string(lease.Member))
	require.Equal(t, 5*time.Second, lease.Lease)
	require.NoError(t, ask(f, member("m")))
	require.Equal(t, "m", string(f.ask.Clauses[2].Lease.Member))

	for _, clauses := range []string{"CL 9 9 60", "SW 9 60 CL 9 9 60", "TB 9 1 60 INTERVAL", "SW 9 60 TB 9 1 60 DEBT"} {
		require.ErrorIs(t, ask(open(t, main(t, clauses))), reservation.ErrFamily, clauses)
	}
	blocked := open(t, main(t, "CL 9 9 60"), forKey(policy.Block, "k"))
	require.Equal(t, int64(1), blocked.decided(t, "k", reserve).Refused)
}

// TestCandidateDoesNotReserve: a candidate charges what is reserved for good, and remembers no call. It may
// have clauses that cannot be reserved.
func TestCandidateDoesNotReserve(t *testing.T) {
	candidate := policy.Entry{Kind: policy.Candidate, Policy: "api", Limits: limits(t, "CL 8 1 60 CC 3 60")}
	f := open(t, main(t, "TB 9 1 60 CC 3 60"), candidate)
	reserve := func(id string) func(c *ratelimit.Call) {
		return func(c *ratelimit.Call) {
			c.ID = idempotency.Call{Token: []byte(id), TTL: time.Minute, Max: 9}
			c.Reserve = reservation.Terms{TTL: 5 * time.Second, Max: 3}
		}
	}
	require.Zero(t, f.decided(t, "k", quantity(2), reserve("a")).Refused)
	require.EqualValues(t, 1, f.table.Policy([]byte("api")).Counts.TryBoth.Load())
	a := &decide.Ask{Key: []byte("api#try:k"), Family: decide.Settle, ID: idempotency.Call{Token: []byte("a"), TTL: time.Minute, Max: 9}}
	a.Settlement = reservation.Settlement{Op: reservation.Cancel}
	f.store.Decide(a)
	require.NoError(t, a.Err)
	require.Equal(t, reservation.Unknown, a.Settled)
	a = &decide.Ask{Key: []byte("api#try:k#2"), Family: decide.Admin, Admin: decide.AdminCall{Op: decide.Members, Count: 9}}
	f.store.Decide(a)
	require.NoError(t, a.Err)
	require.Len(t, a.Result.Members, 1)
	require.Equal(t, "a", string(a.Result.Members[0].Name))
	require.Equal(t, start.Add(time.Minute), a.Result.Members[0].Until)
}
