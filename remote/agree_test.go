package remote

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// TestStoresAgree plays random calls of all families and modes, RL.MULTI and operations on keys, with and without
// identities and reservations, on
// a keyspace in memory and on three servers with one engine, all with one clock: the answers are
// the same.
func TestStoresAgree(t *testing.T) {
	effort.Alone(t)
	steps := effort.Steps(60_000, 1_000_000)
	c := newCloud(1)
	var servers []*server
	for range 3 {
		servers = append(servers, serve(c.join(network{}), bounds()))
	}
	clock := clocktest.New(c.civil())
	ks := keyspace.New(keyspace.Options{Clock: clock})
	t.Cleanup(ks.Close)
	local := ks.NewHandle()
	rng := rand.New(rand.NewPCG(13, 14))
	outcomes, calls := map[string]int{}, identified{}
	for step := 0; step < steps; {
		c.changes = c.changes[:0]
		if rng.IntN(3) == 0 {
			c.runFor(time.Duration(rng.Int64N(int64(300 * time.Millisecond))))
			clock.Set(c.civil())
		}
		local.Refresh()
		var here, there []*decide.Ask
		for range 1 + rng.IntN(9) {
			a := randomAsk(t, rng)
			if rng.IntN(4) == 0 {
				a = calls.next(rng, a)
			}
			b := *a
			b.Own(nil)
			b.ID.Seed++ // each key has one of its own, and it does not affect the answers
			here, there = append(here, a), append(there, &b)
			local.Decide(a)
		}
		servers[rng.IntN(len(servers))].call(t, there...)
		for i, a := range here {
			if want, got := answerOf(a), answerOf(there[i]); want != got {
				require.Equal(t, want, got, "step %d: %+v", step, *a)
			}
			noteOutcome(outcomes, a)
		}
		step += len(here)
	}
	require.Positive(t, servers[0].count.conflicts.Load()+servers[0].count.fromMine.Load())
	for _, outcome := range []string{"repeated", "denied: full", "settled: -1", "settled: 0", "settled: 1", "settled: 2", "forgotten", "lapsed", "linked"} {
		require.Positive(t, outcomes[outcome], "%s: %v", outcome, outcomes)
	}
	for _, s := range servers {
		require.Empty(t, s.policy.reasons)
		require.Zero(t, s.count.repaired.Load())
	}
}

// answerOf returns the answer to an ask, without the memory of a key.
func answerOf(a *decide.Ask) string {
	if a.Err != nil {
		return a.Err.Error()
	}
	switch a.Family {
	case decide.Cancel:
		return ""
	case decide.Settle:
		return fmt.Sprint(a.Now, a.Settled, a.Estimated, a.Used, a.Lapsed)
	case decide.Several:
		return fmt.Sprint(a.Now, a.Refused, a.Missing, a.Details, identityOf(a))
	case decide.Admin:
		r := a.Result
		r.Fields = slices.DeleteFunc(slices.Clone(r.Fields), func(f decide.Field) bool { return f.Name == "bytes" })
		return fmt.Sprintf("%v %+v", a.Now, r)
	}
	return fmt.Sprint(a.Now, a.Decision, identityOf(a))
}

func randomAsk(t testing.TB, rng *rand.Rand) *decide.Ask {
	if rng.IntN(30) == 0 {
		return randomSeveral(t, rng)
	}
	a := randomOne(t, rng)
	switch op := rng.IntN(60); {
	case op == 0:
		return admin(string(a.Key), decide.Delete)
	case op < 8:
		x := admin(string(a.Key), decide.Exists+decide.Op(rng.IntN(int(decide.Describe-decide.Exists)+1)))
		x.Admin.Condition = []decide.ExpireCondition{0, decide.ExpireIfNone, decide.ExpireIfAny, decide.ExpireIfLater, decide.ExpireIfEarlier}[rng.IntN(5)]
		x.Admin.At = epoch.Add(time.Duration(rng.Int64N(int64(4 * time.Hour))))
		if x.Admin.Op == decide.Describe && rng.IntN(2) == 0 {
			x.Admin.By = by(a)
		}
		return x
	case op == 8:
		a.Key = fmt.Append(nil, "key:", rng.IntN(10), ":", rng.IntN(30)) // of another family
	}
	return a
}

// by returns the parameters of an ask.
func by(a *decide.Ask) any {
	switch a.Family {
	case decide.Cell:
		return &a.Quota
	case decide.Window:
		return &a.Window
	case decide.Bucket:
		return &a.Bucket
	}
	return nil
}

// randomOne draws a call of one limiter.
func randomOne(t testing.TB, rng *rand.Rand) *decide.Ask {
	kind := rng.IntN(10)
	a := &decide.Ask{Key: fmt.Append(nil, "key:", kind, ":", rng.IntN(30))}
	quantity := rng.Int64N(12) - 2
	switch {
	case kind == 0:
		var err error
		a.Family, a.Quantity = decide.Cell, quantity
		a.Quota, err = gcra.NewQuota(rng.Int64N(40), 1+rng.Int64N(100), 10)
		require.NoError(t, err)
	case kind < 5:
		a.Family, a.Window = decide.Window, randomWindow(t, rng, slidingwindow.Mode(kind), quantity)
	case kind < 9:
		a.Family, a.Bucket = decide.Bucket, randomBucket(t, rng, tokenbucket.Mode(kind-4), quantity)
		if rng.IntN(40) == 0 {
			a.Family = decide.Cancel
		}
	default:
		a.Family = decide.Lease
		a.Lease = concurrency.Call{
			Op: concurrency.Op(rng.IntN(4) % 3), Member: fmt.Appendf(nil, "member:%0*d", rng.IntN(100), rng.IntN(200)),
			Limit: 1 + rng.Int64N(120), Lease: time.Duration(1 + rng.Int64N(int64(20*time.Minute))), Peek: rng.IntN(8) == 0,
		}
		if a.Lease.Op != concurrency.Acquire {
			a.Lease.Limit, a.Lease.Peek = 0, false
		}
		if a.Lease.Op == concurrency.Release {
			a.Lease.Lease = 0
		}
	}
	return a
}

func randomWindow(t testing.TB, rng *rand.Rand, mode slidingwindow.Mode, quantity int64) slidingwindow.Call {
	c := slidingwindow.Call{
		Mode: mode, Limit: 5 + rng.Int64N(2)*500, Window: time.Duration(1+rng.IntN(2)) * 20 * time.Second, Quantity: quantity,
		Charge: slidingwindow.Charge(max(0, rng.IntN(10)-6)), First: rng.IntN(4) == 0 && mode != slidingwindow.Log,
	}
	if rng.IntN(20) == 0 {
		c.Mode = slidingwindow.Counter + slidingwindow.Mode(rng.IntN(5))
		c.First = c.First && c.Mode != slidingwindow.Log
	}
	if c.Mode == slidingwindow.Calendar {
		c.Window, c.First, c.Calendar = 0, false, calendar.Rule{Unit: calendar.Day, From: uint16(rng.IntN(2))}
	}
	if c.Mode == slidingwindow.Buckets {
		c.Slots, c.Even = 2+rng.IntN(3)*50, rng.IntN(3) == 0
	}
	c.Penalize = rng.IntN(8) == 0 && c.Charge < slidingwindow.Partial
	require.NoError(t, c.Validate())
	return c
}

func randomBucket(t testing.TB, rng *rand.Rand, mode tokenbucket.Mode, quantity int64) tokenbucket.Call {
	c := tokenbucket.Call{
		Mode: mode, Capacity: 10 + rng.Int64N(2)*40, Count: 1 + rng.Int64N(3), Period: 2 * time.Second, Quantity: quantity,
		Charge: tokenbucket.Charge(max(0, rng.IntN(10)-6)), Warmup: time.Duration(1+rng.IntN(2)) * 20 * time.Second, Cold: 3,
	}
	c.Init = c.Capacity - rng.Int64N(2)*5
	c.Interval = limit.Interval(2, time.Second, c.Count)
	if rng.IntN(3) == 0 {
		c.MaxWait, c.Waits = time.Duration(rng.Int64N(int64(10*time.Second))), true
	}
	if rng.IntN(20) == 0 {
		c.Mode = tokenbucket.Greedy + tokenbucket.Mode(rng.IntN(5))
	}
	require.NoError(t, c.Validate())
	return c
}

// randomSeveral draws an RL.MULTI. Its keys are in one slot: across slots a refusal stores nothing,
// not even what a refusal of a single clause stores.
func randomSeveral(t testing.TB, rng *rand.Rand) *decide.Ask {
	a := &decide.Ask{Family: decide.Several}
	for len(a.Clauses) < 1+rng.IntN(4) {
		one := randomOne(t, rng)
		one.Key = append([]byte("{one}"), one.Key...)
		c := decide.Clause{Key: one.Key, Peek: rng.IntN(10) == 0}
		switch one.Family {
		case decide.Cell:
			c.Quota, c.Quantity = &one.Quota, max(0, one.Quantity)
		case decide.Window:
			c.Window = &one.Window
			c.Window.Charge, c.Window.Penalize, c.Window.Quantity = slidingwindow.Whole, false, max(0, c.Window.Quantity)
		case decide.Bucket:
			c.Bucket = &one.Bucket
			c.Bucket.Charge, c.Bucket.Quantity = tokenbucket.Whole, max(0, c.Bucket.Quantity)
		case decide.Lease:
			if one.Lease.Op != concurrency.Acquire {
				continue
			}
			c.Lease = &one.Lease
		default:
			continue
		}
		if !slices.ContainsFunc(a.Clauses, func(b decide.Clause) bool { return string(b.Key) == string(c.Key) }) {
			a.Clauses = append(a.Clauses, c)
		}
	}
	a.Details = make([]limit.Decision, len(a.Clauses))
	return a
}
