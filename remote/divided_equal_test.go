package remote

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	policing "github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/ratelimit/hotkeys"
	"github.com/cellserver/cellserver/stats"
)

// front decides calls under policies. It is the [hotkeys.Caller] of its calls.
type front struct {
	*ratelimit.Decider
	table *policing.Table
	store *keyspace.Handle
}

func (f *front) Table() *policing.Table { return f.table }

func (f *front) Volatile() bool { return false }

func (f *front) Now() limit.Instant { return f.store.Now() }

func (*front) Describe(*hotkeys.Detail, decide.Family) {}

// frontOf returns a front with the policies of entries, whose keyspace has the clock.
func frontOf(t testing.TB, clock *clocktest.Clock, entries []policing.Entry) *front {
	b := policing.NewBuilder(policing.Sizes{})
	for i := range entries {
		require.NoError(t, b.Set(&entries[i]))
	}
	ks := keyspace.New(keyspace.Options{Clock: clock})
	t.Cleanup(ks.Close)
	f := &front{table: b.Table(), store: ks.NewHandle()}
	t.Cleanup(f.store.Close)
	keys := hotkeys.New(stats.GroupOptions{Delimiter: ":", Max: 10}, func(do func(*hotkeys.Recorder)) limit.Instant {
		do(f.Recorder)
		return f.Now()
	}, func(int64) {})
	service := &ratelimit.Service{
		Policies: f, Keys: keys,
		Bounds: func() policing.Bounds { return policing.Bounds{LogMaxEntries: 100, MaxMembers: 100} },
	}
	f.Decider = service.NewDecider(f.store)
	return f
}

// policiesAtRandom returns entries for three policies.
func policiesAtRandom(t testing.TB, r *rand.Rand) (all []policing.Entry) {
	one := []string{
		"CL 6 3 20", "SW 7 20", "SW 7 20 FIXED", "SW 7 20 LOG", "SW 7 20 BUCKETS 4", "TB 7 3 20", "TB 7 3 20 INIT 2", "TB 7 3 20 INTERVAL",
		"TB 7 3 20 DEBT", "CC 3 30", "SW 3 20 FIXED CALLS", "NONE",
	}
	limits := func() *policing.Limits {
		text := one[r.IntN(len(one)-1)]
		for range r.IntN(3) {
			text += " " + one[r.IntN(len(one)-1)]
		}
		if r.IntN(12) == 0 {
			text = "NONE"
		}
		if r.IntN(3) == 0 && text != "NONE" {
			text += fmt.Sprintf(" BAN %d %d %d", 1+r.IntN(4), 10+r.IntN(50), 5+r.IntN(20))
		}
		var words [][]byte
		for _, w := range strings.Fields(text) {
			words = append(words, []byte(w))
		}
		l, err := policing.ParseLimits(words, false, policing.Bounds{})
		require.Empty(t, err, text)
		return l
	}
	for _, name := range []string{"api", "b", "c"} {
		add := func(e policing.Entry) {
			e.Policy, e.Until = name, limit.MaxInstant
			if policing.NewBuilder(policing.Sizes{}).Set(&e) == nil {
				all = append(all, e)
			}
		}
		for count := r.IntN(4) == 0; len(all) == 0 || all[len(all)-1].Policy != name; count = false {
			e := policing.Entry{Limits: limits()}
			e.Shadow, e.Count = r.IntN(5) == 0, count
			add(e)
		}
		if r.IntN(2) == 0 {
			add(policing.Entry{Kind: policing.Candidate, Limits: limits()})
		}
		if r.IntN(3) == 0 {
			add(policing.Entry{Kind: policing.Exempt, Pattern: "1"})
		}
		if r.IntN(5) == 0 {
			add(policing.Entry{Kind: policing.Block, Pattern: "2"})
		}
	}
	return all
}

// callAtRandom returns the parts of a call under two or three policies, without their times and callers.
func callAtRandom(r *rand.Rand, anyOf bool) func() []ratelimit.Part {
	first := ratelimit.Call{Quantity: 1 + r.Int64N(4), Member: fmt.Append(nil, r.IntN(5))}
	switch r.IntN(8) {
	case 0:
		first.Mode = ratelimit.Peek
	case 1, 2:
		if !anyOf {
			first.Mode = ratelimit.Partial
		}
	case 3:
		if !anyOf {
			first.Quantity = -1
		}
	}
	var calls []ratelimit.Call
	for _, i := range r.Perm(3)[:2+r.IntN(2)] {
		c := first
		c.Policy, c.Key = []byte([]string{"api", "b", "c"}[i]), fmt.Append(nil, r.IntN(3))
		if c.Mode != ratelimit.Partial && r.IntN(4) == 0 && c.Quantity > 0 {
			c.Quantity = r.Int64N(4)
		}
		calls = append(calls, c)
	}
	return func() (parts []ratelimit.Part) {
		for _, c := range calls {
			parts = append(parts, ratelimit.Part{Lookup: ratelimit.Lookup{Call: c}})
		}
		return parts
	}
}

// TestCallsUnderPoliciesInSeveralSlotsAreDecidedAsInAKeyspace compares random calls under several policies, whose states are
// in several slots, with the same calls on a keyspace.
func TestCallsUnderPoliciesInSeveralSlotsAreDecidedAsInAKeyspace(t *testing.T) {
	effort.Alone(t)
	calls, denied, failed, over := 0, 0, map[string]int{}, 0
	for seed := range effort.Steps(60, 600) {
		r := rand.New(rand.NewPCG(31, uint64(seed)))
		s := serve(newCloud(uint64(seed)).join(network{}), bounds())
		clock := clocktest.New(s.civil())
		entries := policiesAtRandom(t, r)
		mine, theirs := frontOf(t, clock, entries), frontOf(t, clock, entries)
		for i := range 150 {
			d := time.Duration(r.Int64N([]int64{20e9, 2e9, 1e9, 1e8, 1}[r.IntN(5)]))
			s.runFor(d)
			clock.Advance(d)
			anyOf := r.IntN(2) == 0
			draw := callAtRandom(r, anyOf)
			outcome := func(f *front, do func(parts []ratelimit.Part) (*limit.Decision, []ratelimit.Part, int, error)) string {
				f.store.Refresh()
				parts := draw()
				for i := range parts {
					parts[i].Now, parts[i].From = f.Now(), f
				}
				whole, parts, at, err := do(parts)
				if err != nil {
					return fmt.Sprint(at, err)
				}
				said := fmt.Sprintf("%+v", *whole)
				for i := range parts {
					said += fmt.Sprintf("\n%+v", parts[i].Details)
				}
				f.EndBatch(f.Now())
				return said
			}
			want := outcome(mine, func(parts []ratelimit.Part) (*limit.Decision, []ratelimit.Part, int, error) {
				at, err := mine.FindAll(parts)
				if err != nil {
					failed[err.Error()]++
					return nil, parts, at, err
				}
				var whole *limit.Decision
				if anyOf {
					whole, at, err = mine.Any(parts)
				} else {
					whole, at, err = mine.All(parts, new(decide.Ask))
				}
				if err != nil {
					failed[err.Error()]++
				} else if calls++; whole.Refused > 0 {
					denied++
				}
				return whole, parts, at, err
			})
			got := outcome(theirs, func(parts []ratelimit.Part) (*limit.Decision, []ratelimit.Part, int, error) {
				if at, err := theirs.FindAllShared(parts); err != nil {
					return nil, parts, at, err
				}
				a := new(decide.Ask)
				theirs.JointAll(parts, anyOf, a)
				slots := map[int]bool{s.Slot([]byte("cs:" + string(a.Key))): true}
				for _, key := range a.Others {
					slots[s.Slot([]byte("cs:"+string(key)))] = true
				}
				if len(slots) > 1 {
					over++
				}
				s.call(t, a)
				own := ratelimit.PartsOf(a)
				for i := range own {
					own[i].From = theirs
				}
				whole, at, err := theirs.AnswerParts(a)
				return whole, own, at, err
			})
			require.Equal(t, want, got, "seed %d, call %d, any %t: %+v", seed, i, anyOf, draw())
		}
		for i := range entries {
			require.Equal(t, counts(mine, entries[i].Policy), counts(theirs, entries[i].Policy))
		}
	}
	t.Logf("%d calls, %d denied, %d over several slots, errors %v", calls, denied, over, failed)
	require.Greater(t, over, calls*9/10)
	require.Greater(t, denied, calls/10)
	require.Less(t, denied, calls*4/5)
}

// counts returns the counters of a policy.
func counts(f *front, name string) []int64 {
	n := f.table.Policy([]byte(name)).Counts
	return []int64{
		n.Banned.Load(), n.Blocked.Load(), n.Exempted.Load(), n.ShadowDenied.Load(),
		n.TryBoth.Load(), n.TryOnlyNew.Load(), n.TryOnlyOld.Load(), n.TryNeither.Load(),
	}
}
