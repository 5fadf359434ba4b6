package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/remote"
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

// randomParts draws the parts of a call, of which each has one of the policies called names.
func randomParts(rnd *rand.Rand, f *front, names []string, anyOf bool) func(from *jointFront) []ratelimit.Part {
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

// TestJointsOfSeveralPoliciesDecideAsCalls compares calls under several policies that are decided one ask after another on a
// keyspace with the same calls as joint asks, on a map of parts and on the values of an engine. Races that were lost make
// no difference.
func TestJointsOfSeveralPoliciesDecideAsCalls(t *testing.T) {
	effort.Alone(t)
	const each = 200
	names := []string{"api", "b", "c"}
	calls, denied, failed := map[bool]int{}, map[bool]int{}, map[string]int{}
	sum := map[string]int64{}
	for seed := range effort.Steps(300, 10_000) {
		rnd := rand.New(rand.NewPCG(12, uint64(seed)))
		var entries []policy.Entry
		for _, name := range names {
			for _, e := range randomRules(t, rnd) {
				e.Policy = name
				entries = append(entries, e)
			}
		}
		f, n := openTold(t, entries...)
		var joints []*jointFront
		for i, s := range []shared{parts{}, &engine{map[string][]byte{}, remote.NewPacker()}} {
			g, n := openTold(t, entries...)
			joints = append(joints, &jointFront{g, n, s, rand.New(rand.NewPCG(uint64(i), uint64(seed)))})
		}
		type call struct {
			parts func(*jointFront) []ratelimit.Part
			anyOf bool
		}
		var again []call
		for i := range each {
			d := time.Duration(rnd.Int64N([]int64{90e9, 20e9, 5e9, 1e9, 1e9, 1}[rnd.IntN(6)]))
			f.clock.Advance(d)
			f.store.Refresh()
			c := call{anyOf: rnd.IntN(2) == 0}
			if len(again) > 0 && rnd.IntN(5) == 0 { // a client that has got no answer
				c = again[max(0, len(again)-1-rnd.IntN(6))]
			} else if c.parts = randomParts(rnd, f, names, c.anyOf); c.parts(nil)[0].ID.Token != nil {
				again = append(again, c)
			}
			draw := func(from *jointFront) []ratelimit.Part {
				all := c.parts(from)
				for i := range all {
					all[i].Now = f.store.Now()
				}
				return all
			}
			mine := draw(nil)
			at, err := f.FindAll(mine)
			var whole *limit.Decision
			switch {
			case err != nil:
			case c.anyOf:
				whole, at, err = f.Any(mine)
			default:
				whole, at, err = f.All(mine, &f.ask)
			}
			if err != nil {
				failed[err.Error()]++
				err = fmt.Errorf("%d: %w", at, err)
			} else if whole.Refused > 0 {
				denied[c.anyOf]++
			}
			calls[c.anyOf]++
			told := n.take()
			sum["told"] += int64(len(told))
			want := f.outcomeOf(names, whole, mine, err, told)
			f.EndBatch(f.store.Now())
			for _, g := range joints {
				g.clock.Advance(d)
				g.store.Refresh()
				whole, own, err := g.decideParts(t, draw(g), c.anyOf)
				if got := g.outcomeOf(names, whole, own, err, g.take()); got != want {
					require.Equal(t, want, got, "seed %d, call %d, any %t: %+v of %s", seed, i, c.anyOf, draw(nil), texts(entries))
				}
				require.Zero(t, g.store.Len(0))
				if rnd.IntN(3) == 0 {
					g.EndBatch(g.store.Now())
				}
			}
		}
		for _, name := range names {
			counts := f.table.Policy([]byte(name)).Counts
			sum["banned"] += counts.Banned.Load()
			sum["blocked"] += counts.Blocked.Load()
			sum["exempted"] += counts.Exempted.Load()
			sum["shadow"] += counts.ShadowDenied.Load()
			sum["tried"] += counts.TryBoth.Load() + counts.TryOnlyNew.Load() + counts.TryOnlyOld.Load() + counts.TryNeither.Load()
		}
		sum["reserved"] += f.keys.Reservations().Made
		sum["repeated"] += f.keys.IDs().Repeats
	}
	t.Logf("%v calls, %v denied, %v, errors %v", calls, denied, sum, failed)
	for what, n := range sum {
		require.Positive(t, n, what)
	}
	for _, anyOf := range []bool{false, true} {
		require.GreaterOrEqual(t, calls[anyOf], 20_000)
		require.Positive(t, denied[anyOf])
		require.Less(t, denied[anyOf], calls[anyOf]*2/3)
	}
}
