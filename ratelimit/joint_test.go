package ratelimit_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/remote"
	"github.com/cellserver/cellserver/remote/states"
	"github.com/cellserver/cellserver/reservation"
)

// shared is a store of joint states.
type shared interface {
	// decide decides a joint ask at now, and changes the state.
	decide(t testing.TB, a *decide.Ask, now limit.Instant)
	// lose runs the program of a on the state of any key, and forgets the result.
	lose(t testing.TB, rnd *rand.Rand, a *decide.Ask, now limit.Instant)
}

// parts has the parts of each key by their numbers. It shares no code with package remote.
type parts map[string]map[uint8]entry.Entry

func (p parts) decide(t testing.TB, a *decide.Ask, now limit.Instant) {
	var all []map[uint8]entry.Entry
	for _, key := range keysOf(a) {
		state := maps.Clone(p[key])
		if state == nil {
			state = map[uint8]entry.Entry{}
		}
		all = append(all, state)
	}
	if a.Err = runOn(t, all, a, now); a.Err == nil {
		for i, key := range keysOf(a) {
			p[key] = all[i]
		}
	}
}

func (p parts) lose(t testing.TB, rnd *rand.Rand, a *decide.Ask, now limit.Instant) {
	var all []map[uint8]entry.Entry
	for range keysOf(a) {
		state := map[uint8]entry.Entry{}
		if keys := slices.Sorted(maps.Keys(p)); len(keys) > 0 {
			state = maps.Clone(p[keys[rnd.IntN(len(keys))]])
		}
		all = append(all, state)
	}
	_ = runOn(t, all, a, now)
}

// keysOf returns the keys of the states of a.
func keysOf(a *decide.Ask) []string {
	keys := []string{string(a.Key)}
	for _, key := range a.Others {
		keys = append(keys, string(key))
	}
	return keys
}

// runOn runs the program of a on the parts of its states.
func runOn(t testing.TB, states []map[uint8]entry.Entry, a *decide.Ask, now limit.Instant) error {
	type place struct {
		state int
		n     uint8
	}
	number := func(key []byte) (at place) {
		ok := false
		if len(states) == 1 {
			at.n, ok = a.Program.Number(key)
		} else {
			at.state, at.n, ok = a.Program.(decide.Spanning).Locate(key)
		}
		require.True(t, ok, "%q", key)
		return at
	}
	look := func(at place) *entry.Entry {
		e := states[at.state][at.n]
		if e.Expiry <= now {
			delete(states[at.state], at.n)
			e = entry.Entry{}
		}
		return &e
	}
	change := func(at place, p *decide.Plan) {
		state := states[at.state]
		switch p.Action {
		case decide.Store:
			state[at.n] = entry.Entry{Kind: p.Kind, Expiry: p.Expiry, Value: p.Apply(slices.Clone(state[at.n].Value), nil)}
			look(at)
		case decide.Remove:
			delete(state, at.n)
		}
	}
	return a.Program.Run(func(b *decide.Ask) {
		if b.Family == decide.SettleSeveral {
			var s decide.Settlements
			var p decide.Plan
			s.Start(b)
			each := func(f func(i int, e *entry.Entry)) {
				for i := range s.Len() {
					f(i, look(number(s.Key(i))))
				}
			}
			for more := true; more; more = s.More() {
				if reaches(a, s.Further()) {
					b.Err = decide.ErrLinked
					return
				}
				s.Begin(now)
				each(func(i int, e *entry.Entry) { s.Find(&p, i, e) })
			}
			b.Linked = s.Linked()
			each(func(_ int, e *entry.Entry) { s.Look(&p, e) })
			if b.Err = s.Check(); b.Err != nil {
				return
			}
			was := make([]map[uint8]entry.Entry, len(states))
			for i, state := range states {
				was[i] = maps.Clone(state)
			}
			each(func(i int, e *entry.Entry) {
				if b.Err == nil {
					if b.Err = s.Settle(&p, i, e); b.Err == nil {
						change(number(s.Key(i)), &p)
					}
				}
			})
			if b.Err != nil {
				for i, state := range states {
					clear(state)
					maps.Copy(state, was[i])
				}
			}
			return
		}
		if b.Family != decide.Several {
			var p decide.Plan
			at := number(b.Key)
			if b.Err = p.One(look(at), now, b); b.Err == nil {
				change(at, &p)
			}
			return
		}
		var r decide.Rounds
		entryOf := func(i int) *entry.Entry { return look(number(b.Clauses[i].Key)) }
		if b.Err = r.All(b, now, entryOf); b.Err != nil || !r.Changes {
			return
		}
		for i := range b.Clauses {
			require.NoError(t, r.Again(i, entryOf(i)))
			change(number(b.Clauses[i].Key), &r.Plan)
		}
	})
}

// reaches reports whether a needs other states than its own for the parts with the keys of a link.
func reaches(a *decide.Ask, keys [][]byte) bool {
	if len(keys) == 0 {
		return false
	}
	p := a.Program.(decide.Reaching)
	p.Reach(keys)
	return !slices.EqualFunc(p.States(), a.Others, bytes.Equal)
}

// engine has the values of an engine, as servers write them.
type engine struct {
	values map[string][]byte
	packer *remote.Packer
}

// decideStates decides a on all at now, as a server of package remote does, and returns those that have changed.
func decideStates(all []remote.State, a *decide.Ask, now limit.Instant) (changed []int) {
	var parts decide.Parts
	entryOf := func(i int) *entry.Entry {
		e := all[i].Entry
		if e.Expiry <= now {
			e = entry.Entry{}
		}
		return &e
	}
	if len(all) == 1 {
		a.Err = states.Decide(&parts, a, entryOf(0), now, 64<<10)
	} else {
		a.Err = states.DecideSeveral(&parts, a, len(all), entryOf, now, 64<<10)
	}
	for i := range all {
		is := &parts.State
		if i > 0 {
			is = &parts.Others[i-1]
		}
		if a.Err == nil && is.Changed {
			all[i].Entry, all[i].Stamp = states.EntryOf(is, nil), now
			changed = append(changed, i)
		}
	}
	return changed
}

func (e *engine) decide(t testing.TB, a *decide.Ask, now limit.Instant) {
	var all []remote.State
	keys := keysOf(a)
	for _, key := range keys {
		s, err := remote.Unpack(e.values[key])
		require.NoError(t, err)
		all = append(all, s)
	}
	for _, i := range decideStates(all, a, now) {
		key := keys[i]
		if all[i].Entry.Kind == entry.None {
			delete(e.values, key)
			continue
		}
		w, err := e.packer.Pack([]byte(key), e.values[key], all[i])
		require.NoError(t, err)
		e.values[key] = w.New
	}
}

func (e *engine) lose(t testing.TB, rnd *rand.Rand, a *decide.Ask, now limit.Instant) {
	var all []remote.State
	var raws, was [][]byte
	for range keysOf(a) {
		var raw []byte
		if keys := slices.Sorted(maps.Keys(e.values)); len(keys) > 0 {
			raw = e.values[keys[rnd.IntN(len(keys))]]
		}
		raws, was = append(raws, raw), append(was, slices.Clone(raw))
		s, err := remote.Unpack(raw)
		require.NoError(t, err)
		all = append(all, s)
	}
	decideStates(all, a, now)
	require.Equal(t, was, raws, "a value never changes")
}

// jointFront is a front whose state is in a store of joint states.
type jointFront struct {
	*front
	*told
	shared
	rnd *rand.Rand
}

// decide decides the call as a joint ask, perhaps after some races that were lost.
func (f *jointFront) decide(t testing.TB, c ratelimit.Call) (ratelimit.Answer, error) {
	l := ratelimit.Lookup{Call: c}
	l.From = f
	if err := f.FindShared(&l); err != nil {
		return ratelimit.Answer{}, err
	}
	a, now := new(decide.Ask), c.Now
	f.Joint(&l, a)
	a.Own(nil)
	l = ratelimit.Lookup{}
	f.race(t, a, now)
	own := ratelimit.LookupOf(a)
	own.From = f
	return f.AnswerJoint(own, a)
}

// race decides a at now, perhaps after some races that were lost.
func (f *jointFront) race(t testing.TB, a *decide.Ask, now limit.Instant) {
	for range max(0, f.rnd.IntN(5)-2) {
		if f.rnd.IntN(3) == 0 {
			_ = a.Program.Run(func(b *decide.Ask) { b.Err = limit.ErrFull })
		} else {
			f.lose(t, f.rnd, a, now.Add(time.Duration(f.rnd.Int64N(30e9))-20*time.Second))
		}
	}
	f.shared.decide(t, a, now)
}

// settlement returns a random settlement of what c, a call of f, has reserved.
func settlement(rnd *rand.Rand, f *front, c *ratelimit.Call) (a *decide.Ask, of []byte) {
	a = &decide.Ask{Family: decide.SettleSeveral, ID: c.ID}
	a.Settlement = reservation.Settlement{Op: reservation.Op(1 + rnd.IntN(3)), TTL: time.Duration(1+rnd.Int64N(30)) * time.Second}
	if a.Settlement.Actual = rnd.Int64N(9); rnd.IntN(3) == 0 {
		for range 2 + rnd.IntN(2) {
			a.Settlement.Actuals = append(a.Settlement.Actuals, rnd.Int64N(6))
		}
	}
	a.Window.LogMaxEntries = 1000
	of = c.Key
	if network, err := ratelimit.AppendStateOf(nil, f.table.Policy(c.Policy), c.Key, f.store.Now()); err == nil {
		of = network
	}
	for i := range policy.MaxClauses {
		a.Clauses = append(a.Clauses, decide.Clause{Key: policy.AppendStateKey(nil, c.Policy, of, i+1, false)})
	}
	return a, of
}

// settle has the store of f decide the settlement a of what the policy of c has reserved, as a joint ask.
func (f *jointFront) settle(t testing.TB, a *decide.Ask, c *ratelimit.Call, of []byte, now limit.Instant) *decide.Ask {
	b := *a
	b.Settlement.Actuals = slices.Clone(a.Settlement.Actuals)
	ratelimit.Settle(&b, c.Policy, of)
	b.Own(nil)
	if f.rnd.IntN(3) == 0 {
		f.lose(t, f.rnd, &b, now)
	}
	for f.shared.decide(t, &b, now); errors.Is(b.Err, decide.ErrLinked); f.shared.decide(t, &b, now) {
		b.Others = slices.Clone(b.Program.(decide.Reaching).States())
		b.Own(nil)
		if f.rnd.IntN(3) == 0 {
			f.lose(t, f.rnd, &b, now)
		}
	}
	is := &b.Program.(*ratelimit.Settling).Ask
	is.Err = b.Err
	return is
}

// settled is the answer to a settlement.
func settled(a *decide.Ask) string {
	if a.Err != nil {
		return a.Err.Error()
	}
	return fmt.Sprint(a.Settled, a.Estimated, a.Used, a.Lapsed)
}

// outcome is what a front has said of a call and has counted so far.
func (f *front) outcome(a ratelimit.Answer, err error, notices []ratelimit.Notice) string {
	var b strings.Builder
	if err != nil {
		fmt.Fprintln(&b, "error", err)
	} else {
		fmt.Fprintf(&b, "%+v\n%+v\n", *a.Decision, a.Details)
	}
	f.counters(&b, "api")
	fmt.Fprintf(&b, "%+v\n%+v\n%+v", f.keys.IDs(), f.keys.Reservations(), notices)
	return b.String()
}

// counters appends the counters of the policy called name to b.
func (f *front) counters(b *strings.Builder, name string) {
	n := f.table.Policy([]byte(name)).Counts
	fmt.Fprintln(b, n.Allowed.Load(), n.Denied.Load(), n.Exempted.Load(), n.ExemptedDenied.Load(), n.Blocked.Load(), n.Banned.Load(),
		n.ShadowDenied.Load(), n.TryBoth.Load(), n.TryOnlyOld.Load(), n.TryOnlyNew.Load(), n.TryNeither.Load())
}

// randomRules draws the entries of a policy, all of which can be reserved if reservable is true.
func randomRules(t testing.TB, rnd *rand.Rand, reservable bool) (entries []policy.Entry) {
	one := []string{
		"CL 6 3 20", "SW 7 20", "SW 7 20 FIXED", "SW 7 20 LOG", "SW 7 20 BUCKETS 4", "SW 8 20 BUCKETS 4 EVEN", "SW 9 DAY", "SW 9 20 FIXED ANCHOR KEY",
		"SW 9 20 FIXED ANCHOR FIRST", "TB 7 3 20", "TB 7 3 20 INTERVAL", "TB 7 3 20 DEBT", "TB 7 3 20 INIT 2", "TB 5 2 9 LEAKY", "TB 6 3 20 WARMUP 30", "CC 3 30",
		"SW 0 20 FIXED", "SW 3 20 FIXED CALLS", "NONE",
	}
	if rnd.IntN(3) == 0 || reservable {
		one = []string{"SW 7 20 FIXED", "TB 7 3 20", "CC 3 30", "SW 9 20 LOG", "SW 7 20"}
	}
	some := func() string {
		clauses := ""
		for range 1 + max(0, rnd.IntN(5)-1) {
			clauses += one[rnd.IntN(len(one))] + " "
		}
		if rnd.IntN(3) == 0 {
			clauses += fmt.Sprintf("BAN %d %d %d FACTOR %d MAX 100", 1+rnd.IntN(4), 10+rnd.IntN(50), 5+rnd.IntN(20), 1+rnd.IntN(3))
		}
		return clauses
	}
	valid := func(e policy.Entry, clauses string) {
		if clauses != "" {
			var words [][]byte
			for _, w := range strings.Fields(clauses) {
				words = append(words, []byte(w))
			}
			limits, err := policy.ParseLimits(words, false, policy.Bounds{})
			if err != "" {
				return
			}
			e.Limits = limits
		}
		if e.Until == 0 {
			e.Until = limit.MaxInstant
		}
		if policy.NewBuilder(policy.Sizes{}).Set(&e) == nil {
			entries = append(entries, e)
		}
	}
	main := policy.Entry{Policy: "api"}
	main.Shadow, main.Count = rnd.IntN(6) == 0, rnd.IntN(5) == 0
	if rnd.IntN(3) == 0 {
		main.Notify = 1 + rnd.Int64N(100)
	}
	if rnd.IntN(3) == 0 {
		main.Classes = "all 0% half 50% some 25%"
	}
	if rnd.IntN(4) == 0 {
		main.Key = policy.KeyForm{IP: true, V4: 24, V6: 56}
	}
	for len(entries) == 0 {
		valid(main, some())
	}
	if rnd.IntN(2) == 0 {
		valid(policy.Entry{Policy: "api", Kind: policy.Candidate}, some())
	}
	for _, kind := range []policy.Kind{policy.Override, policy.Boost, policy.Block, policy.Exempt} {
		for range rnd.IntN(3) {
			e := policy.Entry{Policy: "api", Kind: kind, Pattern: randomKey(rnd, main.Key.IP)}
			if rnd.IntN(8) == 0 {
				e.Pattern = "*"
			}
			if rnd.IntN(2) == 0 {
				e.Until = start.Add(time.Duration(rnd.Int64N(600e9)))
			}
			clauses := ""
			switch kind {
			case policy.Override:
				clauses = some()
			case policy.Boost:
				e.Factor = 200 + rnd.Int64N(3000)
			}
			valid(e, clauses)
		}
	}
	return entries
}

func randomKey(rnd *rand.Rand, ip bool) string {
	if ip {
		return []string{"10.0.0.1", "10.0.0.2", "10.0.1.1", "2001:db8::1", "2001:db8:1::/64", "10.0.0.0/24"}[rnd.IntN(6)]
	}
	return []string{"a", "b", "c#2", "d#2#", ""}[rnd.IntN(5)]
}

// randomCall draws a call at now.
func randomCall(rnd *rand.Rand, f *front, ip bool) ratelimit.Call {
	m := []ratelimit.Mode{ratelimit.Whole, ratelimit.Whole, ratelimit.Whole, ratelimit.Peek, ratelimit.Partial, ratelimit.Force, ratelimit.Wait}[rnd.IntN(7)]
	c := ratelimit.Call{Policy: []byte("api"), Key: []byte(randomKey(rnd, ip)), Quantity: 1, Mode: m, Now: f.store.Now(), From: f}
	switch rnd.IntN(8) {
	case 0:
		c.Quantity = rnd.Int64N(10) - 3
	case 1:
		c.Quantity = rnd.Int64N(4)
	case 2:
		var n []int64
		for range 1 + rnd.IntN(4) {
			n = append(n, rnd.Int64N(5)-1)
		}
		if m != ratelimit.Partial {
			c.SetQuantities(n)
		}
	case 3:
		c.Key = []byte("nonsense")
	}
	if m == ratelimit.Wait {
		c.MaxWait = time.Duration(rnd.Int64N(10e9))
	}
	if rnd.IntN(10) > 0 {
		c.Member = fmt.Append(nil, "m", rnd.IntN(5))
	}
	if rnd.IntN(3) == 0 {
		c.ID = idempotency.Call{Token: fmt.Append(nil, "t", rnd.IntN(12)), TTL: time.Duration(1+rnd.Int64N(60)) * time.Second, Max: 1 + rnd.Uint32N(4), Seed: 7}
		if rnd.IntN(2) == 0 && m != ratelimit.Peek && c.Least() > 0 {
			c.Reserve = reservation.Terms{TTL: time.Duration(1+rnd.Int64N(30)) * time.Second, Max: 1 + rnd.Uint32N(3)}
			c.ID.Token = fmt.Append(nil, "r", rnd.IntN(12))
		}
	}
	switch rnd.IntN(12) {
	case 0:
		c.Class = []byte([]string{"all", "half", "some", "none"}[rnd.IntN(4)])
	case 1:
		c.Keep = clause.Keep{Units: rnd.Int64N(3)}
	case 2:
		c.Keep = clause.Keep{Percent: rnd.Int64N(101)}
	}
	return c
}

// TestJointsDecideAsCalls compares calls that are decided one ask after another on a keyspace with the same calls as
// joint asks, on a map of parts and on the values of an engine. Races that were lost make no difference.
func TestJointsDecideAsCalls(t *testing.T) {
	effort.Alone(t)
	const each = 400
	calls, denied, failed := 0, 0, map[string]int{}
	sum := map[string]int64{}
	for seed := range effort.Steps(300, 10_000) {
		rnd := rand.New(rand.NewPCG(11, uint64(seed)))
		entries := randomRules(t, rnd, false)
		ip := entries[0].Key.IP
		f, n := openTold(t, entries...)
		var joints []*jointFront
		for i, s := range []shared{parts{}, &engine{map[string][]byte{}, remote.NewPacker()}} {
			g, n := openTold(t, entries...)
			joints = append(joints, &jointFront{g, n, s, rand.New(rand.NewPCG(uint64(i), uint64(seed)))})
		}
		var again []ratelimit.Call
		for i := range each {
			d := time.Duration(rnd.Int64N([]int64{90e9, 20e9, 5e9, 1e9, 1e9, 1}[rnd.IntN(6)]))
			f.clock.Advance(d)
			f.store.Refresh()
			c := randomCall(rnd, f, ip)
			if len(again) > 0 && rnd.IntN(5) == 0 { // a client that has got no answer
				c = again[max(0, len(again)-1-rnd.IntN(6))]
				c.Now = f.store.Now()
			} else if c.ID.Token != nil {
				again = append(again, c)
			}
			if c.Reserve.TTL > 0 && rnd.IntN(3) > 0 {
				a, of := settlement(rnd, f, &c)
				own := *a
				f.store.Decide(&own)
				sum[fmt.Sprint("settled ", own.Settled)]++
				for _, g := range joints {
					g.clock.Advance(d)
					g.store.Refresh()
					is := g.settle(t, a, &c, of, g.store.Now())
					require.Equal(t, settled(&own), settled(is), "seed %d, call %d: %+v of %s", seed, i, a.Settlement, texts(entries))
				}
				continue
			}
			l := ratelimit.Lookup{Call: c}
			err := f.Find(&l)
			var a ratelimit.Answer
			if err == nil {
				a, err = f.Decide(&l, &f.ask)
			}
			told := n.take()
			sum["told"] += int64(len(told))
			want := f.outcome(a, err, told)
			calls++
			if err != nil {
				failed[err.Error()]++
			} else if a.Decision.Refused > 0 {
				denied++
			}
			f.EndBatch(f.store.Now())
			for _, g := range joints {
				g.clock.Advance(d)
				g.store.Refresh()
				a, err := g.decide(t, c)
				if got := g.outcome(a, err, g.take()); got != want {
					require.Equal(t, want, got, "seed %d, call %d: %+v of %s", seed, i, c, texts(entries))
				}
				require.Zero(t, g.store.Len(0))
				if rnd.IntN(3) == 0 {
					g.EndBatch(g.store.Now())
				}
			}
		}
		counts := f.table.Policy([]byte("api")).Counts
		sum["banned"] += counts.Banned.Load()
		sum["blocked"] += counts.Blocked.Load()
		sum["exempted"] += counts.Exempted.Load()
		sum["shadow"] += counts.ShadowDenied.Load()
		sum["tried"] += counts.TryBoth.Load() + counts.TryOnlyNew.Load() + counts.TryOnlyOld.Load() + counts.TryNeither.Load()
		sum["reserved"] += f.keys.Reservations().Made
		sum["lapsed"] += f.keys.Reservations().Expired
		sum["repeated"] += f.keys.IDs().Repeats
		sum["forgotten"] += f.keys.IDs().Forgotten
	}
	t.Logf("%d calls, %d denied, %v, errors %v", calls, denied, sum, failed)
	for what, n := range sum {
		require.Positive(t, n, what)
	}
	require.GreaterOrEqual(t, calls, 100_000)
	require.Less(t, denied, calls/2)
}

// texts returns the limits of entries.
func texts(entries []policy.Entry) (all []string) {
	for i := range entries {
		e := &entries[i]
		text := fmt.Sprintf("%s %q %+v", e.Kind, e.Pattern, e.Flags)
		if e.Limits != nil {
			text += " " + strings.Join(e.Limits.Text, " ")
		}
		all = append(all, text)
	}
	return all
}
