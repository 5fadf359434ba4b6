package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
)

// notifying returns e with the mark percent.
func notifying(e policy.Entry, percent int64) policy.Entry {
	e.Notify = percent
	return e
}

// told collects notices, which are delivered when they are taken.
type told struct {
	all     []ratelimit.Notice
	deliver func()
}

// take returns the notices since the last take.
func (n *told) take() []ratelimit.Notice {
	if n.deliver != nil {
		n.deliver()
		n.deliver = nil
	}
	all := n.all
	n.all = nil
	return all
}

// openTold does what open does, and collects the notices.
func openTold(t *testing.T, entries ...policy.Entry) (*front, *told) {
	t.Helper()
	f, n := open(t, entries...), &told{}
	f.service.Notices = ratelimit.NewNotices(func(f func()) { n.deliver = f }, func(is ratelimit.Notice) { n.all = append(n.all, is) })
	return f, n
}

// TestNotices: a key comes once in a window for the mark and once for a denial.
func TestNotices(t *testing.T) {
	f, n := openTold(t, notifying(main(t, "SW 10 60 FIXED ANCHOR FIRST"), 80))
	f.decided(t, "k", quantity(7))
	require.Empty(t, n.take())
	f.decided(t, "k", quantity(1))
	mark := ratelimit.Notice{
		Event: ratelimit.Marked, Policy: "api", Key: "k", Clause: "SW 10 60 FIXED ANCHOR FIRST", Limit: 10, Used: 8,
		ResetAfter: time.Minute,
	}
	require.Equal(t, []ratelimit.Notice{mark}, n.take())
	f.decided(t, "k", quantity(2))
	require.Empty(t, n.take(), "once in a window")
	f.clock.Advance(20 * time.Second)
	f.store.Refresh()
	f.decided(t, "k")
	denied := mark
	denied.Event, denied.Used, denied.ResetAfter = ratelimit.Denied, 10, 40*time.Second
	require.Equal(t, []ratelimit.Notice{denied}, n.take())
	f.decided(t, "k", quantity(5))
	f.decided(t, "k", mode(ratelimit.Peek))
	f.decided(t, "k", quantity(0))
	f.decided(t, "k", quantity(-1))
	require.Empty(t, n.take())
	f.decided(t, "other", quantity(11))
	denied.Key, denied.Used, denied.ResetAfter = "other", 0, 0 // its window is that of the clause
	require.Equal(t, []ratelimit.Notice{denied}, n.take(), "another key")
	f.clock.Advance(40 * time.Second)
	f.store.Refresh()
	f.decided(t, "k", quantity(10))
	mark.Used = 10
	require.Equal(t, []ratelimit.Notice{mark}, n.take(), "the next window")
}

// TestNoticesOfCallsThatPass: SHADOW and exemptions let calls pass, and the denial is told nevertheless.
func TestNoticesOfCallsThatPass(t *testing.T) {
	exempt := forKey(policy.Exempt, "free")
	exempt.Until = limit.MaxInstant
	shadow := named(t, "shadow", "TB 1 1 60 SW 9 60")
	shadow.Shadow, shadow.Notify = true, 100
	f, n := openTold(t, notifying(main(t, "TB 1 1 60"), 100), exempt, shadow)
	a, err := f.decide("free", quantity(2))
	require.NoError(t, err)
	require.Zero(t, a.Decision.Refused)
	require.Equal(t, limit.NoRetry, a.Decision.RetryAfter)
	require.Len(t, a.Details, 1)
	require.EqualValues(t, 1, a.Details[0].Refused, "which says what would have been")
	got := n.take()
	require.Len(t, got, 1)
	require.Equal(t, ratelimit.Denied, got[0].Event)
	require.True(t, got[0].Passes)

	ofShadow := func(c *ratelimit.Call) { c.Policy = []byte("shadow") }
	f.decided(t, "k", ofShadow)
	require.Equal(t, ratelimit.Marked, n.take()[0].Event)
	a, err = f.decide("k", ofShadow)
	require.NoError(t, err)
	require.Zero(t, a.Decision.Refused)
	require.EqualValues(t, 1, a.Details[0].Refused)
	require.Equal(t, time.Minute, a.Details[0].RetryAfter)
	require.Zero(t, a.Details[1].Refused)
	got = n.take()
	require.Len(t, got, 1)
	require.Equal(t, "TB 1 1 60", got[0].Clause)
	require.True(t, got[0].Passes)
}

// TestNoticesOfSeveralPolicies: each policy tells of its own limits.
func TestNoticesOfSeveralPolicies(t *testing.T) {
	f, n := openTold(t, notifying(named(t, "one", "TB 2 1 100"), 50), named(t, "two", "TB 2 1 100"), notifying(named(t, "three", "TB 1 1 100 SW 9 60"), 100))
	clauses := func() (all []string) {
		for _, is := range n.take() {
			all = append(all, is.Policy+" "+is.Event.String()+" "+is.Clause)
		}
		return all
	}
	f.all(t, f.parts([]string{"one", "two", "three"}))
	require.Equal(t, []string{"one mark TB 2 1 100", "three mark TB 1 1 100"}, clauses())
	f.all(t, f.parts([]string{"one", "two", "three"}))
	require.Equal(t, []string{"three denied TB 1 1 100"}, clauses())
	f.anyOf(t, f.parts([]string{"three", "one"}, quantity(9)))
	require.Equal(t, []string{"three denied SW 9 60", "one denied TB 2 1 100"}, clauses())
}

// TestNoticesAreBounded: a policy has 100 notices at once and 100 in a second, and 1,024 wait for delivery. What was left
// out comes with a later call. The table forgets the windows that end first.
func TestNoticesAreBounded(t *testing.T) {
	f, n := openTold(t, notifying(main(t, "SW 1 86400 FIXED ANCHOR FIRST"), 100))
	pass := func(d time.Duration) {
		f.clock.Advance(d)
		f.store.Refresh()
	}
	for i := range 3000 {
		f.decided(t, fmt.Sprint(i))
	}
	require.Len(t, n.take(), 100)
	require.EqualValues(t, 2900, f.service.Notices.LeftOut())
	require.EqualValues(t, 100, f.service.Notices.Delivered())
	pass(10 * time.Millisecond)
	f.decided(t, "2999", mode(ratelimit.Force))
	require.Len(t, n.take(), 1)

	pass(time.Second)
	for i := range 1100 {
		f.decided(t, fmt.Sprint("waits", i))
		pass(10 * time.Millisecond)
	}
	require.Len(t, n.take(), 1024)
	require.EqualValues(t, 2900+76, f.service.Notices.LeftOut())

	told := 0
	for i := range 40_000 {
		f.decided(t, fmt.Sprint("key", i))
		pass(10 * time.Millisecond)
		if i%1000 == 999 {
			told += len(n.take())
		}
	}
	require.Equal(t, 40_000, told)
	for i := range 1000 {
		f.decided(t, fmt.Sprint("key", i), mode(ratelimit.Force))
		pass(10 * time.Millisecond)
	}
	require.Greater(t, len(n.take()), 900, "which the table has forgotten")
}

// TestNoticesOfWhatNeverPasses: a denial of a key of which nothing is in use comes once in the length of the window.
func TestNoticesOfWhatNeverPasses(t *testing.T) {
	for clauses, window := range map[string]time.Duration{
		"SW 10 3600": time.Hour, "SW 10 DAY": start.Sub(0).Truncate(24*time.Hour) + 24*time.Hour - start.Sub(0), "TB 10 1 60": 10 * time.Minute,
		"CL 9 1 60": 10 * time.Minute, "CC 0 60": time.Minute,
	} {
		f, n := openTold(t, notifying(main(t, clauses), 80))
		ask := func() int {
			f.decided(t, "k", quantity(11), member("m"))
			return len(n.take())
		}
		require.Equal(t, 1, ask(), clauses)
		f.clock.Advance(window - 1)
		f.store.Refresh()
		require.Zero(t, ask(), clauses)
		f.clock.Advance(1)
		f.store.Refresh()
		require.Equal(t, 1, ask(), clauses)
	}
}

// TestNoticesAreThoseOfAModel compares the notices of random calls with a map that forgets nothing.
func TestNoticesAreThoseOfAModel(t *testing.T) {
	effort.Alone(t)
	for clauses, lengths := range map[string][]time.Duration{
		"SW 10 20 FIXED": {20e9}, "TB 10 3 7": {23_333_333_334}, "CL 9 3 20": {66_666_666_667}, "SW 10 20 LOG TB 14 3 20": {20e9, 93_333_333_334},
	} {
		t.Run(clauses, func(t *testing.T) {
			f, n := openTold(t, notifying(main(t, clauses), 75))
			rnd := rand.New(rand.NewPCG(5, uint64(len(clauses))))
			ends := map[string]limit.Instant{}
			some := 0
			for i := range effort.Steps(5_000, 250_000) {
				f.clock.Advance(time.Duration(rnd.Int64N([]int64{40e9, 5e9, 1e9}[min(2, rnd.IntN(20))])))
				f.store.Refresh()
				key, now := []string{"a", "b", "c"}[rnd.IntN(3)], f.store.Now()
				q, m := rnd.Int64N(8)-1, []ratelimit.Mode{ratelimit.Whole, ratelimit.Whole, ratelimit.Peek, ratelimit.Partial, ratelimit.Force}[rnd.IntN(5)]
				a, err := f.decide(key, quantity(q), mode(m))
				require.NoError(t, err)
				details := a.Details
				if details == nil {
					details = []limit.Decision{*a.Decision}
				}
				var want []string
				for j, d := range details {
					event := ""
					switch denied := d.Refused > 0 && (m != ratelimit.Partial || d.Refused == q); {
					case q <= 0 || m == ratelimit.Peek:
					case denied:
						event = "denied"
					case (d.Limit-d.Remaining)*4 >= d.Limit*3:
						event = "mark"
					}
					id := fmt.Sprint(key, " ", event, " ", j)
					if event != "" && ends[id] <= now {
						window := d.ResetAfter
						if window == 0 { // nothing is in use
							window = lengths[j]
						}
						want, ends[id] = append(want, id), now.Add(max(window, time.Second))
					}
				}
				var got []string
				for _, is := range n.take() {
					at := 0
					if len(details) > 1 && is.Clause != f.table.Policy([]byte("api")).Main.Limits.Text[0] {
						at = 1
					}
					got = append(got, fmt.Sprint(is.Key, " ", is.Event, " ", at))
				}
				require.Equal(t, want, got, "call %d: %d of %s in mode %d: %+v", i, q, key, m, details)
				some += len(got)
			}
			require.Greater(t, some, 100)
		})
	}
}
