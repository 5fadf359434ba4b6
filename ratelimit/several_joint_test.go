package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/remote"
	"github.com/cellserver/cellserver/reservation"
)

// decideParts decides the call of parts as a joint ask, perhaps after some races that were lost.
func (f *jointFront) decideParts(t testing.TB, parts []ratelimit.Part, anyOf bool) (*limit.Decision, []ratelimit.Part, error) {
	if at, err := f.FindAllShared(parts); err != nil {
		return nil, parts, fmt.Errorf("%d: %w", at, err)
	}
	a, now := new(decide.Ask), parts[0].Now
	f.JointAll(parts, anyOf, a)
	a.Own(nil)
	clear(parts)
	f.race(t, a, now)
	own := ratelimit.PartsOf(a)
	for i := range own {
		own[i].From = f
	}
	whole, at, err := f.AnswerParts(a)
	if err != nil {
		err = fmt.Errorf("%d: %w", at, err)
	}
	return whole, own, err
}

// outcomeOf is outcome for a call of parts under the policies called names.
func (f *front) outcomeOf(names []string, whole *limit.Decision, parts []ratelimit.Part, err error, notices []ratelimit.Notice) string {
	var b strings.Builder
	if err != nil {
		fmt.Fprintln(&b, "error", err)
	} else {
		fmt.Fprintf(&b, "%+v\n", *whole)
		for i := range parts {
			fmt.Fprintf(&b, "%+v\n", parts[i].Details)
		}
	}
	for _, name := range names {
		f.counters(&b, name)
	}
	fmt.Fprintf(&b, "%+v\n%+v\n%+v", f.keys.IDs(), f.keys.Reservations(), notices)
	return b.String()
}

// randomParts draws the parts of a call, of which each has one of the policies called names. If reserves is true, the call
// is a reservation.
func randomParts(rnd *rand.Rand, f *front, names []string, anyOf, reserves bool) func(from *jointFront) []ratelimit.Part {
	var calls []ratelimit.Call
	order := rnd.Perm(len(names))[:2+rnd.IntN(len(names)-1)]
	for _, i := range order {
		ip := f.table.Policy([]byte(names[i])).Main.Key.IP
		c := randomCall(rnd, f, ip)
		c.Policy = []byte(names[i])
		if rnd.IntN(20) > 0 && string(c.Key) == "nonsense" {
			c.Key = []byte(randomKey(rnd, ip))
		}
		if len(calls) == 0 {
			if c.Keep.Units > 0 {
				c.Keep.Units = 0
			}
			if c.Class = nil; anyOf {
				c.ID.Token, c.Reserve.TTL = nil, 0
			}
			if anyOf && c.Mode == ratelimit.Partial {
				c.Mode = ratelimit.Whole
			}
		} else {
			first := &calls[0]
			c.Mode, c.MaxWait, c.Keep, c.Class, c.Member, c.ID, c.Reserve = first.Mode, first.MaxWait, first.Keep, nil, first.Member, first.ID, first.Reserve
			if c.Mode == ratelimit.Partial {
				c.Quantity, c.Quantities = first.Quantity, nil
			}
		}
		calls = append(calls, c)
	}
	if reserves {
		id := idempotency.Call{Token: fmt.Append(nil, "r", rnd.IntN(1000)), TTL: time.Duration(1+rnd.Int64N(60)) * time.Second, Max: 4 + rnd.Uint32N(9), Seed: 7}
		terms := reservation.Terms{TTL: time.Duration(1+rnd.Int64N(30)) * time.Second, Max: 1 + rnd.Uint32N(9)}
		for i := range calls {
			c := &calls[i]
			c.Mode, c.Member, c.ID, c.Reserve, c.Class, c.Keep = calls[0].Mode, []byte("m"), id, terms, nil, clause.Keep{}
			if c.Mode == ratelimit.Peek || c.Mode == ratelimit.Partial {
				c.Mode = ratelimit.Whole
			}
			c.Quantity, c.Quantities = 1+rnd.Int64N(2), nil
		}
	}
	least := calls[0].Least()
	for i := range calls {
		least = min(least, calls[i].Least())
	}
	for i := range calls {
		c := &calls[i]
		if least <= 0 && c.Reserve.TTL > 0 {
			c.Reserve.TTL = 0
		}
		if least < 0 && anyOf {
			c.Quantity, c.Quantities = 1, nil
		}
	}
	return func(from *jointFront) (parts []ratelimit.Part) {
		for _, c := range calls {
			if from != nil {
				c.From = from
			}
			parts = append(parts, ratelimit.Part{Lookup: ratelimit.Lookup{Call: c}})
		}
		return parts
	}
}

// severalRules draws the entries of the policies called names, all of which can be reserved if reservable is true.
func severalRules(t testing.TB, rnd *rand.Rand, names []string, reservable bool) (entries []policy.Entry) {
	for _, name := range names {
		for _, e := range randomRules(t, rnd, reservable) {
			e.Policy, e.Count = name, e.Count && !reservable
			entries = append(entries, e)
		}
	}
	return entries
}

// severalWorld has a front with a keyspace, and fronts that decide the same calls as joint asks.
type severalWorld struct {
	t          *testing.T
	rnd        *rand.Rand
	names      []string
	reservable bool // all policies can be reserved
	entries    []policy.Entry
	*front
	*told
	joints []*jointFront
	sum    map[string]int64
}

func newSeveralWorld(t *testing.T, seed uint64, names []string, sum map[string]int64) *severalWorld {
	w := &severalWorld{t: t, rnd: rand.New(rand.NewPCG(12, seed)), names: names, sum: sum}
	w.reservable = w.rnd.IntN(2) == 0
	w.entries = severalRules(t, w.rnd, names, w.reservable)
	w.front, w.told = openTold(t, w.entries...)
	for i, s := range []shared{parts{}, &engine{map[string][]byte{}, remote.NewPacker()}} {
		g, n := openTold(t, w.entries...)
		w.joints = append(w.joints, &jointFront{g, n, s, rand.New(rand.NewPCG(uint64(i), seed))})
	}
	return w
}

// advance moves all clocks.
func (w *severalWorld) advance() {
	steps := []int64{90e9, 20e9, 5e9, 1e9, 1e9, 1}
	if w.reservable {
		steps = []int64{20e9, 5e9, 2e9, 1e9, 1, 1}
	}
	d := time.Duration(w.rnd.Int64N(steps[w.rnd.IntN(6)]))
	w.clock.Advance(d)
	w.store.Refresh()
	for _, g := range w.joints {
		g.clock.Advance(d)
		g.store.Refresh()
	}
}

// change gives all fronts other policies with the same names.
func (w *severalWorld) change() {
	w.count()
	w.entries = severalRules(w.t, w.rnd, w.names, w.reservable)
	w.table = tableOf(w.t, w.entries)
	for _, g := range w.joints {
		g.table = tableOf(w.t, w.entries)
	}
}

// count adds the counters of the policies to the sums.
func (w *severalWorld) count() {
	for _, name := range w.names {
		counts := w.table.Policy([]byte(name)).Counts
		w.sum["banned"] += counts.Banned.Load()
		w.sum["blocked"] += counts.Blocked.Load()
		w.sum["exempted"] += counts.Exempted.Load()
		w.sum["shadow"] += counts.ShadowDenied.Load()
		w.sum["tried"] += counts.TryBoth.Load() + counts.TryOnlyNew.Load() + counts.TryOnlyOld.Load() + counts.TryNeither.Load()
	}
}

// decideAll has all fronts decide the same call, and compares what they say and count.
func (w *severalWorld) decideAll(of func(*jointFront) []ratelimit.Part, anyOf bool) (whole *limit.Decision, err error) {
	draw := func(from *jointFront) []ratelimit.Part {
		all := of(from)
		for i := range all {
			all[i].Now = w.store.Now()
		}
		return all
	}
	mine := draw(nil)
	at, err := w.FindAll(mine)
	switch {
	case err != nil:
	case anyOf:
		whole, at, err = w.Any(mine)
	default:
		whole, at, err = w.All(mine, &w.ask)
	}
	said := err
	if err != nil {
		said = fmt.Errorf("%d: %w", at, err)
	}
	told := w.take()
	w.sum["told"] += int64(len(told))
	want := w.outcomeOf(w.names, whole, mine, said, told)
	w.EndBatch(w.store.Now())
	for _, g := range w.joints {
		whole, own, err := g.decideParts(w.t, draw(g), anyOf)
		if got := g.outcomeOf(w.names, whole, own, err, g.take()); got != want {
			require.Equal(w.t, want, got, "any %t: %+v of %s", anyOf, draw(nil), texts(w.entries))
		}
		require.Zero(w.t, g.store.Len(0))
		if w.rnd.IntN(3) == 0 {
			g.EndBatch(g.store.Now())
		}
	}
	return whole, err
}

// settleAll has all fronts settle what all, the calls of the parts, have reserved, in the name of the first or, at times, of
// another part, and compares the answers.
func (w *severalWorld) settleAll(all []ratelimit.Part) {
	c := &all[0].Call
	if w.rnd.IntN(6) == 0 {
		c = &all[w.rnd.IntN(len(all))].Call
	}
	a, of := settlement(w.rnd, w.front, c)
	own := *a
	w.store.Decide(&own)
	w.sum[fmt.Sprint("settled ", own.Settled)]++
	if own.Linked {
		w.sum["linked"]++
	}
	for _, g := range w.joints {
		is := g.settle(w.t, a, c, of, g.store.Now())
		require.Equal(w.t, settled(&own), settled(is), "%+v of %s", a.Settlement, texts(w.entries))
		require.Equal(w.t, own.Linked, is.Linked)
	}
}

// forgetOne deletes what the call of one part has used of its policy, at all fronts.
func (w *severalWorld) forgetOne(c *ratelimit.Call) {
	of := c.Key
	if network, err := ratelimit.AppendStateOf(nil, w.table.Policy(c.Policy), c.Key, w.store.Now()); err == nil {
		of = network
	}
	var a decide.Ask
	f := ratelimit.Forget(&a, 0, c.Policy, of, false)
	require.NoError(w.t, f.Run(w.store.Decide))
	w.sum["removed"] += f.Removed
	for _, g := range w.joints {
		is := ratelimit.Forget(&a, 0, c.Policy, of, false)
		g.shared.decide(w.t, &a, g.store.Now())
		require.NoError(w.t, a.Err)
		require.Equal(w.t, f.Removed, is.Removed)
	}
}

// TestJointsOfSeveralPoliciesDecideAsCalls compares calls under several policies that are decided one ask after another on a
// keyspace, and the settlements of their reservations, with the same calls as joint asks, on a map of parts and on the values of
// an engine. Races that were lost make no difference, nor do policies that change and states that are deleted.
func TestJointsOfSeveralPoliciesDecideAsCalls(t *testing.T) {
	effort.Alone(t)
	const each = 200
	names := []string{"api", "b", "c"}
	calls, denied, failed := map[bool]int{}, map[bool]int{}, map[string]int{}
	settlements, sum := 0, map[string]int64{}
	for seed := range effort.Steps(320, 10_000) {
		w := newSeveralWorld(t, uint64(seed), names, sum)
		rnd := w.rnd
		type call struct {
			parts func(*jointFront) []ratelimit.Part
			anyOf bool
		}
		var again []call
		for range each {
			w.advance()
			c := call{anyOf: rnd.IntN(2) == 0}
			if len(again) > 0 && rnd.IntN(3) == 0 { // a client that has got no answer, or one that settles
				c = again[max(0, len(again)-1-rnd.IntN(6))]
				if all := c.parts(nil); all[0].Reserve.TTL > 0 {
					if rnd.IntN(20) == 0 {
						w.forgetOne(&all[rnd.IntN(len(all))].Call)
					}
					if rnd.IntN(3) > 0 {
						settlements++
						w.settleAll(all)
						continue
					}
				}
			} else if c.parts = randomParts(rnd, w.front, names, c.anyOf, w.reservable && !c.anyOf && rnd.IntN(2) == 0); c.parts(nil)[0].ID.Token != nil {
				again = append(again, c)
			}
			calls[c.anyOf]++
			if whole, err := w.decideAll(c.parts, c.anyOf); err != nil {
				failed[err.Error()]++
			} else if whole.Refused > 0 {
				denied[c.anyOf]++
			}
			if rnd.IntN(100) == 0 {
				w.change()
			}
		}
		w.count()
		sum["reserved"] += w.keys.Reservations().Made
		sum["lapsed"] += w.keys.Reservations().Expired
		sum["repeated"] += w.keys.IDs().Repeats
	}
	t.Logf("%v calls, %v denied, %d settlements, %v, errors %v", calls, denied, settlements, sum, failed)
	for what, n := range sum {
		require.Positive(t, n, what)
	}
	require.GreaterOrEqual(t, calls[false]+calls[true]+settlements, 60_000)
	for _, anyOf := range []bool{false, true} {
		require.GreaterOrEqual(t, calls[anyOf], 20_000)
		require.Positive(t, denied[anyOf])
		require.Less(t, denied[anyOf], calls[anyOf]*2/3)
	}
}
