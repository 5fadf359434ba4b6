package decide_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/ban"
	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

const (
	start = limit.Instant(1_700_000_000_000_000_000)
	tatAt = start + limit.Instant(2*time.Second)
)

// key is a key in memory, as callers of the package use it.
type key struct {
	e    entry.Entry
	plan decide.Plan
}

// ask decides a on the entry of the key and applies the plan.
func (k *key) ask(t testing.TB, now limit.Instant, a *decide.Ask) error {
	t.Helper()
	if k.e.Expiry <= now {
		k.e = entry.Entry{}
	}
	was := k.e
	was.Value = bytes.Clone(k.e.Value)
	err := k.plan.One(&k.e, now, a)
	require.Equal(t, was, k.e, "deciding changes nothing")
	require.Equal(t, now, a.Now)
	if err == nil {
		k.apply(&k.plan)
	}
	return err
}

func (k *key) apply(p *decide.Plan) {
	switch p.Action {
	case decide.Store:
		k.e = entry.Entry{Kind: p.Kind, Expiry: p.Expiry, Value: p.Apply(k.e.Value, nil)}
	case decide.Remove:
		k.e = entry.Entry{}
	}
	p.Forget()
}

func quota(t testing.TB) gcra.Quota {
	q, err := gcra.NewQuota(4, 1, 2) // five cells, one every two seconds
	require.NoError(t, err)
	return q
}

func cell(t testing.TB, quantity int64) *decide.Ask {
	return &decide.Ask{Family: decide.Cell, Quota: quota(t), Quantity: quantity}
}

func window(mode slidingwindow.Mode, quantity int64) *decide.Ask {
	c := slidingwindow.Call{Mode: mode, Limit: 5, Window: 10 * time.Second, Quantity: quantity}
	if mode == slidingwindow.Buckets {
		c.Slots = 5
	}
	if mode == slidingwindow.Calendar {
		c.Window, c.Calendar = 0, calendar.Rule{Unit: calendar.Day, From: 30}
	}
	return &decide.Ask{Family: decide.Window, Window: c}
}

func bucket(mode tokenbucket.Mode, quantity int64) *decide.Ask {
	return &decide.Ask{Family: decide.Bucket, Bucket: tokenbucket.Call{
		Mode: mode, Capacity: 5, Init: 5, Count: 1, Period: 2 * time.Second, Interval: 2 * time.Second, Quantity: quantity,
		Warmup: time.Minute, Cold: 3,
	}}
}

func lease(op concurrency.Op, member string) *decide.Ask {
	return &decide.Ask{Family: decide.Lease, Lease: concurrency.Call{Op: op, Member: []byte(member), Limit: 2, Lease: time.Minute}}
}

// denial is an ask that counts a denial for a ban.
func denial() *decide.Ask {
	c := &ban.Call{Refusals: 2, Window: time.Minute, Block: time.Hour, Factor: ban.Whole, Max: time.Hour}
	return &decide.Ask{Family: decide.Ban, Bans: c, Denied: true}
}

func admin(c decide.AdminCall) *decide.Ask { return &decide.Ask{Family: decide.Admin, Admin: c} }

// limiters returns, for every mode of every family, a function that returns an ask of some units.
func limiters(t testing.TB) map[string]func(quantity int64) *decide.Ask {
	all := map[string]func(int64) *decide.Ask{
		"cell": func(n int64) *decide.Ask { return cell(t, n) },
		"lease": func(n int64) *decide.Ask {
			if n < 0 {
				return lease(concurrency.Release, "m")
			}
			return lease(concurrency.Acquire, "m")
		},
	}
	for _, m := range []slidingwindow.Mode{slidingwindow.Counter, slidingwindow.Fixed, slidingwindow.Log, slidingwindow.Buckets, slidingwindow.Calendar} {
		all[m.String()] = func(n int64) *decide.Ask { return window(m, n) }
	}
	for _, m := range []tokenbucket.Mode{tokenbucket.Greedy, tokenbucket.Debt, tokenbucket.Interval, tokenbucket.Leaky, tokenbucket.Warmup} {
		all[m.String()] = func(n int64) *decide.Ask { return bucket(m, n) }
	}
	return all
}

func TestEveryModeIsStoredUntilItIsUnused(t *testing.T) {
	for name, ask := range limiters(t) {
		t.Run(name, func(t *testing.T) {
			k, a := key{}, ask(1)
			require.NoError(t, k.ask(t, start, a))
			require.True(t, a.Decision.Allowed())
			require.Equal(t, decide.Store, k.plan.Action)
			require.NotEqual(t, entry.None, k.e.Kind)
			require.Equal(t, name == "cell", k.e.Kind == entry.Cell)
			require.Greater(t, k.e.Expiry, start)
			require.Equal(t, name != "cell", k.plan.Frees, "nobody waits for cells, and a new limiter is another one")
			first := k.e

			for range 20 {
				a = ask(1)
				require.NoError(t, k.ask(t, start, a))
			}
			if k.e.Kind.IsLease() {
				require.True(t, a.Decision.Allowed(), "the member has its lease")
				return
			}
			require.False(t, a.Decision.Allowed())
			require.Equal(t, decide.Keep, k.plan.Action)
			require.Equal(t, first.Kind, k.e.Kind)

			a = ask(0)
			require.NoError(t, k.ask(t, k.e.Expiry, a))
			require.Equal(t, entry.None, k.e.Kind, "it has expired, and looking stores nothing")
		})
	}
}

func TestEveryFamilyRefusesOtherKinds(t *testing.T) {
	holding := map[string]entry.Entry{}
	for name, ask := range limiters(t) {
		k := key{}
		require.NoError(t, k.ask(t, start, ask(1)))
		holding[name] = k.e
	}
	holding["list"] = entry.Entry{Kind: entry.List, Expiry: entry.NoExpiry}
	all := limiters(t)
	all["ban"] = func(int64) *decide.Ask { return denial() }
	k := key{}
	require.NoError(t, k.ask(t, start, denial()))
	holding["ban"] = k.e
	family := func(k entry.Kind) []bool {
		return []bool{k == entry.Cell, k == entry.Ban, k.IsWindow(), k.IsBucket(), k.IsLease()}
	}
	for held, e := range holding {
		for name, ask := range all {
			k := key{e: e}
			k.e.Value = bytes.Clone(e.Value)
			err := k.ask(t, start, ask(1))
			if held == "list" || !equal(family(e.Kind), family(holding[name].Kind)) {
				require.ErrorIs(t, err, limit.ErrWrongType, "%s on %s", name, held)
				require.Equal(t, decide.Keep, k.plan.Action)
			} else {
				require.NoError(t, err, "%s on %s", name, held)
			}
		}
	}
}

func equal(a, b []bool) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestCells(t *testing.T) {
	for _, c := range []struct {
		name     string
		e        entry.Entry
		quantity int64
		action   decide.Action
		expiry   limit.Instant
		err      error
	}{
		{"none", entry.Entry{}, 1, decide.Store, tatAt, nil},
		{"none, looking", entry.Entry{}, 0, decide.Keep, 0, nil},
		{"none, giving back", entry.Entry{}, -1, decide.Keep, 0, nil},
		{"one", entry.Entry{Kind: entry.Cell, Expiry: tatAt}, 1, decide.Store, tatAt.Add(2 * time.Second), nil},
		{"one, looking", entry.Entry{Kind: entry.Cell, Expiry: tatAt}, 0, decide.Keep, 0, nil},
		{"one, too many", entry.Entry{Kind: entry.Cell, Expiry: tatAt}, 9, decide.Keep, 0, nil},
		{"one, giving back", entry.Entry{Kind: entry.Cell, Expiry: tatAt}, -1, decide.Remove, 0, nil},
		{
			"one with another expiry",
			entry.Entry{Kind: entry.Cell, Expiry: entry.NoExpiry, Value: gcra.AppendState(nil, tatAt)},
			1, decide.Store, tatAt.Add(2 * time.Second), nil,
		},
		{"a TAT in a string", entry.Entry{Kind: entry.String, Expiry: entry.NoExpiry, Value: gcra.AppendDecimal(nil, tatAt)}, 1, decide.Store, tatAt.Add(2 * time.Second), nil},
		{"a string", entry.Entry{Kind: entry.String, Expiry: entry.NoExpiry, Value: []byte("x")}, 1, decide.Keep, 0, limit.ErrNotInteger},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := key{e: c.e}
			require.ErrorIs(t, k.ask(t, start, cell(t, c.quantity)), c.err)
			require.Equal(t, c.action, k.plan.Action)
			if c.action == decide.Store {
				require.Equal(t, entry.Cell, k.e.Kind)
				require.Equal(t, c.expiry, k.e.Expiry)
				require.Equal(t, c.expiry, entry.CellTAT(&k.e))
				require.Equal(t, entry.Entry{Kind: entry.Cell, Expiry: c.expiry, Value: []byte{}}, k.plan.Cell([]byte{}))
				require.Empty(t, k.e.Value, "the expiry tells the TAT")
			}
		})
	}
}

func TestCellThatLivesToTheLastInstantExpires(t *testing.T) {
	k := key{e: entry.Entry{Kind: entry.Cell, Expiry: limit.MaxInstant - 1}}
	q, err := gcra.NewQuota(1<<62, 1, 1)
	require.NoError(t, err)
	a := &decide.Ask{Family: decide.Cell, Quota: q, Quantity: 1}
	k.e = entry.Entry{Kind: entry.String, Expiry: entry.NoExpiry, Value: gcra.AppendDecimal(nil, limit.MaxInstant-limit.Instant(time.Second))}
	require.NoError(t, k.ask(t, start, a))
	require.True(t, a.Decision.Allowed())
	require.Equal(t, entry.NoExpiry-1, k.e.Expiry)
	require.Equal(t, limit.MaxInstant, entry.CellTAT(&k.e))
}

func TestWhoWaitsIsToldOfRoom(t *testing.T) {
	full := func(a *decide.Ask) key {
		k := key{}
		a.Window.Quantity, a.Bucket.Quantity = 5, 5
		require.NoError(t, k.ask(t, start, a))
		return k
	}
	longer := full(window(slidingwindow.Fixed, 5))
	longer.e.Expiry = entry.NoExpiry
	for _, c := range []struct {
		name  string
		key   key
		ask   *decide.Ask
		at    time.Duration
		frees bool
	}{
		{"a window that goes on", full(window(slidingwindow.Log, 5)), window(slidingwindow.Log, 1), time.Second, false},
		{"a window that gets units back", full(window(slidingwindow.Log, 5)), window(slidingwindow.Log, -1), 0, true},
		{"a window that gets all back", full(window(slidingwindow.Log, 5)), window(slidingwindow.Log, -5), 0, true},
		{"a window of another mode", full(window(slidingwindow.Log, 5)), forced(window(slidingwindow.Fixed, 1)), 0, true},
		{"a window that was to live longer", longer, forced(window(slidingwindow.Fixed, 1)), 0, true},
		{"a bucket that goes on", full(bucket(tokenbucket.Greedy, 5)), bucket(tokenbucket.Greedy, 1), 2 * time.Second, false},
		{"a bucket that gets tokens back", full(bucket(tokenbucket.Greedy, 5)), bucket(tokenbucket.Greedy, -1), 0, true},
		{"a bucket that gets all back", full(bucket(tokenbucket.Greedy, 5)), bucket(tokenbucket.Greedy, -5), 0, true},
		{"leases, one more", full(lease(concurrency.Acquire, "a")), lease(concurrency.Acquire, "b"), 0, true},
		{"leases, the last", full(lease(concurrency.Acquire, "a")), lease(concurrency.Release, "a"), 0, true},
		{"leases, none", full(lease(concurrency.Acquire, "a")), lease(concurrency.Release, "b"), 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.NoError(t, c.key.ask(t, start.Add(c.at), c.ask))
			require.Equal(t, c.frees, c.key.plan.Frees)
		})
	}
}

func forced(a *decide.Ask) *decide.Ask {
	a.Window.Charge = slidingwindow.Force
	return a
}

func TestCancelGivesBackWhatABucketHas(t *testing.T) {
	k, a := key{}, bucket(tokenbucket.Greedy, 5)
	require.NoError(t, k.ask(t, start, a))
	a = bucket(tokenbucket.Greedy, 2)
	a.Bucket.MaxWait, a.Bucket.Waits = time.Minute, true
	require.NoError(t, k.ask(t, start, a))
	require.Equal(t, start.Add(14*time.Second), k.e.Expiry)
	a.Family = decide.Cancel
	require.NoError(t, k.ask(t, start, a))
	require.Equal(t, start.Add(10*time.Second), k.e.Expiry)
	require.True(t, k.plan.Frees)

	for _, e := range []entry.Entry{{}, {Kind: entry.Cell, Expiry: tatAt}} {
		k = key{e: e}
		require.NoError(t, k.ask(t, start, a))
		require.Equal(t, decide.Keep, k.plan.Action)
	}
}

func TestErrorsOfFamiliesStoreNothing(t *testing.T) {
	over := window(slidingwindow.Counter, 1<<62)
	over.Window.Charge, over.Window.Limit = slidingwindow.Force, 1<<62
	k := key{}
	require.NoError(t, k.ask(t, start, over))
	require.NoError(t, k.ask(t, start, forced(window(slidingwindow.Counter, 1<<62-1))))
	require.ErrorIs(t, k.ask(t, start, forced(window(slidingwindow.Counter, 1<<62))), limit.ErrOverflow)
	require.Equal(t, decide.Keep, k.plan.Action)

	k = key{}
	debt := bucket(tokenbucket.Greedy, 1<<62)
	debt.Bucket.Charge = tokenbucket.Force
	require.ErrorIs(t, k.ask(t, start, debt), limit.ErrOverflow)
	require.Equal(t, decide.Keep, k.plan.Action)

	k = key{}
	one := lease(concurrency.Acquire, "a")
	require.NoError(t, k.ask(t, start, one))
	one = lease(concurrency.Acquire, "b")
	one.Lease.MaxMembers = 1
	require.ErrorIs(t, k.ask(t, start, one), limit.ErrTooManyMembers)
	require.Equal(t, decide.Keep, k.plan.Action)
}

func TestAskThatIsNotAboutOneEntry(t *testing.T) {
	for _, a := range []*decide.Ask{{}, {Family: decide.Several}, admin(decide.AdminCall{Op: decide.Scan}), admin(decide.AdminCall{})} {
		k := key{}
		require.Error(t, k.ask(t, start, a))
		require.Equal(t, decide.Keep, k.plan.Action)
	}
}

func TestDeltas(t *testing.T) {
	for name, ask := range limiters(t) {
		k := key{}
		require.NoError(t, k.ask(t, start, ask(1)))
		a := ask(1)
		if a.Family == decide.Lease {
			a.Lease.Member = []byte("other")
		}
		require.NoError(t, k.plan.One(&k.e, start.Add(time.Millisecond), a))
		delta, ok := k.plan.AppendDelta([]byte("x"), k.e.Value)
		require.Equal(t, name == "log" || name == "buckets" || name == "lease", ok, name)
		if !ok {
			require.Equal(t, "x", string(delta), name)
		} else {
			require.Greater(t, len(delta), 1, name)
		}
	}
}

func TestPlanForgetsTheMember(t *testing.T) {
	k, a := key{}, lease(concurrency.Acquire, "m")
	require.NoError(t, k.plan.One(&k.e, start, a))
	value := k.plan.Apply(nil, nil)
	k.plan.Forget()
	require.NotEqual(t, value, k.plan.Apply(nil, nil))
}

func TestActionsHaveTheNumbersOfTheFamilies(t *testing.T) {
	require.Equal(t, []int{int(decide.Keep), int(decide.Store), int(decide.Remove)}, []int{int(slidingwindow.Keep), int(slidingwindow.Store), int(slidingwindow.Delete)})
	require.Equal(t, []int{int(decide.Keep), int(decide.Store), int(decide.Remove)}, []int{int(tokenbucket.Keep), int(tokenbucket.Store), int(tokenbucket.Delete)})
	require.Equal(t, []int{int(decide.Keep), int(decide.Store), int(decide.Remove)}, []int{int(concurrency.Keep), int(concurrency.Store), int(concurrency.Delete)})
}

func TestDecidingAllocatesNothing(t *testing.T) {
	for name, ask := range limiters(t) {
		k, a := key{}, ask(1)
		require.NoError(t, k.ask(t, start, a))
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = k.plan.One(&k.e, start, a) }), name)
	}
}
