package decide_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// drawLimiter draws an ask of a limiter that a clause may have, without its quantity. Each family
// has one limit, so that a refusal has no changed rate to store.
func drawLimiter(rt *rapid.T, t *testing.T) *decide.Ask {
	switch rapid.IntRange(0, 3).Draw(rt, "family") {
	case 0:
		return cell(t, 1)
	case 1:
		return window(slidingwindow.Mode(rapid.IntRange(1, 4).Draw(rt, "windows")), 1)
	case 2:
		mode := rapid.SampledFrom([]tokenbucket.Mode{tokenbucket.Greedy, tokenbucket.Debt, tokenbucket.Interval}).Draw(rt, "bucket")
		return bucket(mode, 1)
	}
	return lease(concurrency.Acquire, rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "member"))
}

// with sets the quantity of a, unless it is about a lease.
func with(a *decide.Ask, n int64) *decide.Ask {
	a.Quantity, a.Window.Quantity, a.Bucket.Quantity = n, n, n
	return a
}

// clauseOf returns an ask as a clause.
func clauseOf(a *decide.Ask) decide.Clause {
	switch a.Family {
	case decide.Window:
		return decide.Clause{Key: a.Key, Window: &a.Window}
	case decide.Bucket:
		return decide.Clause{Key: a.Key, Bucket: &a.Bucket}
	case decide.Lease:
		return decide.Clause{Key: a.Key, Lease: &a.Lease}
	}
	return decide.Clause{Key: a.Key, Quota: &a.Quota, Quantity: a.Quantity}
}

// drawSeveral draws the asks of a few clauses and the entries of their keys at the instant now.
func drawSeveral(rt *rapid.T, t *testing.T) (asks []*decide.Ask, entries []entry.Entry, now limit.Instant) {
	now = start
	for i := range rapid.IntRange(1, 5).Draw(rt, "clauses") {
		a := drawLimiter(rt, t)
		a.Key = fmt.Append(nil, "key", i)
		var k key
		at := start
		for range rapid.IntRange(0, 8).Draw(rt, "calls before") {
			at = at.Add(time.Duration(rapid.Int64Range(0, 2e9).Draw(rt, "step")))
			before := *with(a, rapid.Int64Range(1, 3).Draw(rt, "quantity before"))
			if a.Family == decide.Lease {
				before.Lease.Member = []byte(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "member before"))
			}
			require.NoError(t, k.ask(t, at, &before))
		}
		now = max(now, at)
		asks, entries = append(asks, with(a, rapid.Int64Range(-2, 7).Draw(rt, "quantity"))), append(entries, k.e)
	}
	for i := range entries {
		if entries[i].Expiry <= now {
			entries[i] = entry.Entry{}
		}
	}
	return asks, entries, now
}

// alone decides each ask separately on copies of the entries.
func alone(t *testing.T, asks []*decide.Ask, entries []entry.Entry, now limit.Instant) (answers []limit.Decision, after []entry.Entry) {
	for i, a := range asks {
		k, own := key{e: entries[i]}, *a
		k.e.Value = bytes.Clone(k.e.Value)
		require.NoError(t, k.ask(t, now, &own))
		answers, after = append(answers, own.Decision), append(after, k.e)
	}
	return answers, after
}

// together decides the clauses of a on copies of the entries, and returns the resulting entries.
func together(t *testing.T, a *decide.Ask, entries []entry.Entry, now limit.Instant) (after []entry.Entry) {
	var s decide.Rounds
	for _, e := range entries {
		e.Value = bytes.Clone(e.Value)
		after = append(after, e)
	}
	at := func(i int) *entry.Entry { return &after[i] }
	require.NoError(t, s.All(a, now, at))
	if s.Changes {
		for i := range after {
			require.NoError(t, s.Again(i, at(i)))
			k := key{e: after[i]}
			k.apply(&s.Plan)
			after[i] = k.e
		}
	}
	s.Forget()
	return after
}

func severalOf(asks []*decide.Ask) *decide.Ask {
	a := &decide.Ask{Family: decide.Several, Details: make([]limit.Decision, len(asks))}
	for _, one := range asks {
		a.Clauses = append(a.Clauses, clauseOf(one))
	}
	return a
}

// same compares entries. An empty value is equal to none.
func same(t require.TestingT, want, got []entry.Entry) {
	for i := range want {
		require.Equal(t, string(want[i].Value), string(got[i].Value), "of key %d", i)
		require.Equal(t, []any{want[i].Kind, want[i].Expiry}, []any{got[i].Kind, got[i].Expiry}, "of key %d", i)
	}
}

// TestSeveralIsItsClauses: if each clause passes alone, together they have the same answers and
// store the same. If one does not, nothing changes, and each answer says whether its clause would
// have passed.
func TestSeveralIsItsClauses(t *testing.T) {
	refusals := 0
	rapid.Check(t, func(rt *rapid.T) {
		asks, entries, now := drawSeveral(rt, t)
		answers, after := alone(t, asks, entries, now)
		refused := false
		for _, d := range answers {
			refused = refused || !d.Allowed()
		}
		a := severalOf(asks)
		got := together(t, a, entries, now)
		require.Equal(rt, refused, a.Refused)
		if !refused {
			require.Equal(rt, answers, a.Details)
			same(rt, after, got)
			return
		}
		refusals++
		same(rt, entries, got)
		for i, d := range answers {
			require.Equal(rt, d.Refused, a.Details[i].Refused)
			require.Equal(rt, d.RetryAfter, a.Details[i].RetryAfter)
		}
	})
	require.Positive(t, refusals)
}
