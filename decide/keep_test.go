package decide_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// kept are asks of each family that can leave units for others, with a quantity of 1. The lease is for a member of
// its own.
var kept = map[string]func(t *testing.T, member int) *decide.Ask{
	"cell":     func(t *testing.T, _ int) *decide.Ask { return cell(t, 1) },
	"counter":  func(_ *testing.T, _ int) *decide.Ask { return window(slidingwindow.Counter, 1) },
	"fixed":    func(_ *testing.T, _ int) *decide.Ask { return window(slidingwindow.Fixed, 1) },
	"log":      func(_ *testing.T, _ int) *decide.Ask { return window(slidingwindow.Log, 1) },
	"greedy":   func(_ *testing.T, _ int) *decide.Ask { return bucket(tokenbucket.Greedy, 1) },
	"interval": func(_ *testing.T, _ int) *decide.Ask { return bucket(tokenbucket.Interval, 1) },
	"lease": func(_ *testing.T, member int) *decide.Ask {
		return &decide.Ask{Family: decide.Lease, Lease: concurrency.Call{
			Limit: 5, Lease: 7 * time.Second, Member: fmt.Append(nil, member),
		}}
	},
}

// asSeveral returns a as a Several of one clause.
func asSeveral(a *decide.Ask) *decide.Ask {
	c := decide.Clause{Key: []byte("k"), Keep: a.Keep, Counts: a.Counts}
	switch a.Family {
	case decide.Window:
		c.Window = &a.Window
		a.Partial = a.Window.Charge == slidingwindow.Partial
	case decide.Bucket:
		c.Bucket = &a.Bucket
		a.Partial = a.Bucket.Charge == tokenbucket.Partial
	case decide.Lease:
		c.Lease = &a.Lease
	default:
		c.Quota, c.Quantity = &a.Quota, a.Quantity
	}
	a.Family, a.Clauses, a.Details = decide.Several, []decide.Clause{c}, make([]limit.Decision, 1)
	return a
}

// TestKeptUnitsRemain: a call passes exactly if so many units remain, a part is what leaves them, and RetryAfter is
// the first instant at which the call passes. All of that is seen by the remaining units of calls that take nothing.
func TestKeptUnitsRemain(t *testing.T) {
	effort.Alone(t)
	for name, ask := range kept {
		for _, several := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", name, several), func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(7, uint64(len(name))))
				var k key
				now := start
				for i := range effort.Steps(2_000, 80_000) {
					now = now.Add(time.Duration(rnd.Int64N(3e9)))
					free := lookAt(t, k, now, ask(t, -1))
					a := ask(t, i)
					a.Keep = rnd.Int64N(7)
					q, partial := int64(1), false
					if a.Family != decide.Lease {
						q = 1 + rnd.Int64N(4)
						*unitsOf(a) = q
						partial = a.Family != decide.Cell && rnd.IntN(3) == 0
					}
					if partial {
						a.Window.Charge, a.Bucket.Charge = slidingwindow.Partial, tokenbucket.Partial
					}
					once := *a
					if several {
						asSeveral(a)
					}
					after := copied(k)
					d := askOn(t, &after, now, a)
					why := fmt.Sprintf("call %d: %d of %d, keeps %d: %+v", i, q, free, once.Keep, d)
					granted := q
					if partial {
						granted = max(0, min(q, free-once.Keep))
					} else if q+once.Keep > free {
						granted = 0
					}
					if partial {
						require.Equal(t, q-granted, d.Refused, why)
					} else {
						require.Equal(t, granted == 0, d.Refused == 1, why)
					}
					require.Equal(t, int64(5), d.Limit, why)
					require.Equal(t, free-granted, d.Remaining, why)
					require.Equal(t, free-granted, lookAt(t, after, now, ask(t, -1)), why)
					if granted == 0 {
						checkRetry(t, k, now, &once, d.RetryAfter, partial, why)
					}
					k = after
				}
			})
		}
	}
}

// checkRetry checks that a, which is denied at now, passes after the time retry, and not before.
func checkRetry(t *testing.T, k key, now limit.Instant, a *decide.Ask, retry time.Duration, partial bool, why string) {
	least := int64(1)
	if !partial && a.Family != decide.Lease {
		least = *unitsOf(a)
	}
	if retry == limit.NoRetry {
		require.Greater(t, least+a.Keep, int64(5), why)
		return
	}
	for _, early := range []time.Duration{1, 0} {
		then, world, at := *a, copied(k), now.Add(retry-early)
		d := askOn(t, &world, at, &then)
		granted := d.Refused == 0 || partial && d.Refused < *unitsOf(a)
		require.Equal(t, early == 0, granted, "%s; %v too early: %+v", why, early, d)
	}
}

// lookAt returns the remaining units.
func lookAt(t *testing.T, k key, now limit.Instant, a *decide.Ask) int64 {
	if a.Family == decide.Lease {
		a.Lease.Peek = true
	} else {
		*unitsOf(a) = 0
	}
	k = copied(k)
	return askOn(t, &k, now, a).Remaining
}

// copied returns a copy of k.
func copied(k key) key {
	return key{e: entry.Entry{Kind: k.e.Kind, Expiry: k.e.Expiry, Value: bytes.Clone(k.e.Value)}}
}

// unitsOf returns the quantity of a, which is no lease.
func unitsOf(a *decide.Ask) *int64 {
	if a.Family == decide.Cell {
		return &a.Quantity
	}
	return quantityOf(a)
}

// askOn decides a on k, which it changes, and returns the answer.
func askOn(t *testing.T, k *key, now limit.Instant, a *decide.Ask) limit.Decision {
	if k.e.Expiry <= now {
		k.e = entry.Entry{}
	}
	if a.Family == decide.Several {
		var r decide.Rounds
		require.NoError(t, r.All(a, now, func(int) *entry.Entry { return &k.e }))
		if r.Changes {
			require.NoError(t, r.Again(0, &k.e))
			k.apply(&r.Plan)
		}
		return a.Binding()
	}
	require.NoError(t, k.ask(t, now, a))
	return a.Decision
}

// TestKeepWithEven: a window that spreads its units over its slots leaves units for others as well. A model without KEEP
// says what the slot still gives.
func TestKeepWithEven(t *testing.T) {
	effort.Alone(t)
	even := func(quantity int64, is bool) *decide.Ask {
		a := window(slidingwindow.Buckets, quantity)
		a.Window.Limit, a.Window.Even = 20, is
		return a
	}
	for _, several := range []bool{false, true} {
		rnd := rand.New(rand.NewPCG(9, 9))
		var k key
		now := start
		for i := range effort.Steps(5_000, 200_000) {
			now = now.Add(time.Duration(rnd.Int64N(2e9)))
			free := lookAt(t, k, now, even(0, false))
			q, keep := 1+rnd.Int64N(6), rnd.Int64N(12)
			plain, model := even(q, true), copied(k)
			plain.Window.Charge = slidingwindow.Partial
			slot := q - askOn(t, &model, now, plain).Refused
			a := even(q, true)
			a.Keep = keep
			partial := rnd.IntN(2) == 0
			if partial {
				a.Window.Charge = slidingwindow.Partial
			}
			if several {
				asSeveral(a)
			}
			d := askOn(t, &k, now, a)
			granted := min(q, slot, free-keep)
			if granted < q && !partial || granted < 0 {
				granted = 0
			}
			why := fmt.Sprintf("call %d: %d of %d, slot %d, keeps %d: %+v", i, q, free, slot, keep, d)
			require.Equal(t, free-granted, d.Remaining, why)
			if partial {
				require.Equal(t, q-granted, d.Refused, why)
			} else {
				require.Equal(t, granted == 0, d.Refused == 1, why)
			}
			if never := q > 4 || q+keep > 20; granted == 0 && !partial {
				require.Equal(t, never, d.RetryAfter == limit.NoRetry, why)
			}
		}
	}
}
