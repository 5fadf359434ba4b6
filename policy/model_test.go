package policy_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/stretchr/testify/require"
)

// model is a simple model of a Builder: a map with all entries, which it searches completely.
type model map[id]policy.Entry

// id identifies an entry.
type id struct {
	kind            policy.Kind
	policy, pattern string
}

// find returns the entries that apply to a key, identified by their field Since, which is unique.
func (m model) find(name, key string, now limit.Instant) (applied [4]limit.Instant) {
	var lengths [4]int
	for at, e := range m {
		if !at.kind.HasPattern() || at.policy != name || now >= e.Until {
			continue
		}
		length := len(at.pattern) // of a prefix with its star, so that no pattern has length 0
		if prefix, ok := strings.CutSuffix(at.pattern, "*"); ok {
			if !strings.HasPrefix(key, prefix) {
				continue
			}
		} else if length += 1 << 20; key != at.pattern {
			continue
		}
		if i := at.kind - policy.Override; length > lengths[i] {
			lengths[i], applied[i] = length, e.Since
		}
	}
	return applied
}

// check compares a table with the model, for keys that are near patterns.
func (m model) check(t require.TestingT, table *policy.Table, random *rand.Rand, now limit.Instant) {
	for range 20 {
		name, key := anyName(random), anyKey(random)
		p := table.Policy([]byte(name))
		main, ok := m[id{policy.Main, name, ""}]
		require.Equal(t, ok, p != nil)
		if p == nil {
			continue
		}
		require.Equal(t, main.Since, p.Main.Since)
		candidate, ok := m[id{policy.Candidate, name, ""}]
		require.Equal(t, ok, p.Candidate != nil)
		require.True(t, !ok || p.Candidate.Since == candidate.Since)
		require.Equal(t, m.find(name, key, now), sinceOf(p, key, now), "%s %q", name, key)
	}
}

// sinceOf returns the result of model.find for a policy.
func sinceOf(p *policy.Policy, key string, now limit.Instant) (applied [4]limit.Instant) {
	var a policy.Applied
	p.Find([]byte(key), now, &a)
	for i, e := range []*policy.Entry{a.Override, a.Boost, a.Block, a.Exempt} {
		if e != nil {
			applied[i] = e.Since
		}
	}
	return applied
}

func anyName(random *rand.Rand) string { return fmt.Sprint("p", random.IntN(12)) }

// anyKey returns a random key of up to 6 characters, each a, b or a star.
func anyKey(random *rand.Rand) string {
	key := make([]byte, random.IntN(7))
	for i := range key {
		key[i] = "aaab*"[random.IntN(5)]
	}
	return string(key)
}

// anyEntry returns a valid entry with Since set to serial.
func anyEntry(random *rand.Rand, serial int, now limit.Instant, limits []*policy.Limits) *policy.Entry {
	e := &policy.Entry{Kind: policy.Kind(random.IntN(6)), Policy: anyName(random), Until: limit.MaxInstant, Since: limit.Instant(serial)}
	if e.Kind <= policy.Override {
		e.Limits = limits[random.IntN(len(limits))]
	}
	if e.Kind == policy.Boost {
		e.Factor = random.Int64N(policy.MaxFactor) + 1
	}
	if e.Kind.HasPattern() {
		e.Pattern = "x" + anyKey(random) // not empty
		if e.Pattern = e.Pattern[1:]; e.Pattern == "" || random.IntN(3) == 0 {
			e.Pattern += "*"
		}
		if random.IntN(2) == 0 {
			e.Until = now.Add(1) + limit.Instant(random.IntN(200))
		}
	}
	return e
}

// TestModel changes entries at random, and compares the tables with the model. It compares earlier
// tables again later: they must not change.
func TestModel(t *testing.T) {
	effort.Alone(t)
	random := rand.New(rand.NewPCG(16, 1))
	limits := []*policy.Limits{limitsOf(t, "TB 200 100 1"), limitsOf(t, "SW 5 60"), limitsOf(t, "CL 1 1 1 CL 2 2 2")}
	type old struct {
		table *policy.Table
		model model
		now   limit.Instant
	}
	var (
		b   = policy.NewBuilder(policy.Sizes{})
		m   = model{}
		now = limit.Instant(1)
		was []old
	)
	for step := range 10_000 {
		switch n := random.IntN(10); {
		case n < 6:
			e := anyEntry(random, step+1, now, limits)
			require.NoError(t, b.Set(e))
			m[id{e.Kind, e.Policy, e.Pattern}] = *e
			*e = policy.Entry{} // the builder has a copy
		case n < 9:
			e := anyEntry(random, 0, now, limits)
			at := id{e.Kind, e.Policy, e.Pattern}
			_, ok := m[at]
			require.Equal(t, ok, b.Get(e.Kind, e.Policy, e.Pattern) != nil)
			require.Equal(t, ok, b.Delete(e.Kind, e.Policy, e.Pattern))
			delete(m, at)
		default:
			now += limit.Instant(random.IntN(20))
			if random.IntN(2) == 0 {
				m.dropExpired(t, b, now)
			}
		}
		if step%10 == 0 {
			table := b.Table()
			m.check(t, table, random, now)
			if step%200 == 0 {
				copied := model{}
				for at, e := range m {
					copied[at] = e
				}
				was = append(was, old{table, copied, now})
			}
			o := was[random.IntN(len(was))]
			o.model.check(t, o.table, random, o.now)
		}
		if step%2000 == 0 {
			requireSame(t, m, b)
		}
	}
	for at := range m {
		require.True(t, b.Delete(at.kind, at.policy, at.pattern))
	}
	require.Zero(t, b.Sizes())
	require.Zero(t, b.Bytes())
	require.Equal(t, limit.MaxInstant, b.NextExpiry())
}

// dropExpired removes expired entries from the builder and the model, and compares the results.
func (m model) dropExpired(t require.TestingT, b *policy.Builder, now limit.Instant) {
	last := limit.MinInstant
	for _, e := range b.DropExpired(now) {
		at := id{e.Kind, e.Policy, e.Pattern}
		require.Equal(t, m[at].Since, e.Since)
		require.LessOrEqual(t, e.Until, now)
		require.LessOrEqual(t, last, e.Until)
		last = e.Until
		delete(m, at)
	}
	next := limit.MaxInstant
	for _, e := range m {
		next = min(next, e.Until)
	}
	require.Greater(t, next, now)
	require.Equal(t, next, b.NextExpiry())
}

// requireSame compares all entries.
func requireSame(t require.TestingT, m model, b *policy.Builder) {
	var sizes policy.Sizes
	names := map[string]bool{}
	b.Each("", func(e *policy.Entry) bool {
		at := id{e.Kind, e.Policy, e.Pattern}
		require.Equal(t, m[at].Since, e.Since)
		require.Same(t, e, b.Get(e.Kind, e.Policy, e.Pattern))
		names[e.Policy] = true
		switch {
		case e.Kind == policy.Override:
			sizes.Overrides++
		case e.Kind > policy.Override:
			sizes.Others++
		}
		return true
	})
	sizes.Policies = len(names)
	require.Equal(t, sizes, b.Sizes())
	single := 0
	for at := range m {
		if !at.kind.HasPattern() {
			single++
		}
	}
	require.Len(t, m, single+sizes.Overrides+sizes.Others)
}

// TestManyEntries: lookups are correct while the number of entries grows and shrinks, also in
// earlier tables.
func TestManyEntries(t *testing.T) {
	const most, step = 20_000, 500
	b := policy.NewBuilder(policy.Sizes{})
	require.NoError(t, b.Set(entryOf(t, policy.Main, "")))
	limits := limitsOf(t, "TB 200 100 1")
	var tables []*policy.Table // the i-th has the entries below i*step
	for i := range most {
		if i%step == 0 {
			tables = append(tables, b.Table())
		}
		require.NoError(t, b.Set(&policy.Entry{Kind: policy.Override, Policy: "api", Pattern: fmt.Sprint(i), Limits: limits, Until: limit.MaxInstant}))
	}
	found := func(table *policy.Table, i int) bool {
		var a policy.Applied
		table.Policy([]byte("api")).Find(fmt.Append(nil, i), 0, &a)
		return a.Override != nil
	}
	for i := range tables {
		require.Equal(t, i*step, tables[i].Sizes().Overrides)
		for _, k := range []int{0, 1, i*step - 1, i * step, i*step + 1, most - 1, i * step / 2} {
			if k >= 0 {
				require.Equal(t, k < i*step, found(tables[i], k))
			}
		}
	}
	for i := most - 1; i >= 0; i-- {
		require.True(t, b.Delete(policy.Override, "api", fmt.Sprint(i)))
		if i%step == 0 {
			table := b.Table()
			for k := 0; k < most; k += 97 {
				require.Equal(t, k < i, found(table, k))
				require.Equal(t, k < i, found(tables[i/step], k))
			}
		}
	}
}

// TestReaders: while a builder makes changes, readers of its tables find in each table the entries
// at the time of its creation. All entries of a table have its number in Since.
func TestReaders(t *testing.T) {
	const patterns = 200
	b := policy.NewBuilder(policy.Sizes{})
	limits := limitsOf(t, "TB 200 100 1")
	var published atomic.Pointer[policy.Table]
	publish := func(number int) {
		since := limit.Instant(number)
		require.NoError(t, b.Set(&policy.Entry{Policy: "api", Limits: limits, Until: limit.MaxInstant, Since: since}))
		for i := range patterns {
			e := &policy.Entry{Kind: policy.Block, Policy: "api", Pattern: fmt.Sprintf("k%03d", i), Until: limit.MaxInstant - limit.Instant(i), Since: since}
			if i%2 == 0 {
				e.Pattern += "*"
			}
			if (i+number)%10 == 0 {
				b.Delete(e.Kind, e.Policy, e.Pattern)
				continue
			}
			require.NoError(t, b.Set(e))
		}
		published.Store(b.Table())
	}
	publish(0)
	var readers sync.WaitGroup
	var stop atomic.Bool
	for range 4 {
		readers.Go(func() {
			var a policy.Applied
			for i := 0; !stop.Load(); i = (i + 1) % patterns {
				p := published.Load().Policy([]byte("api"))
				p.Find(fmt.Appendf(nil, "k%03d", i), 0, &a)
				p.Counts.Blocked.Add(1)
				if since := p.Main.Since; (a.Block == nil) != ((i+int(since))%10 == 0) || a.Block != nil && a.Block.Since != since {
					panic(fmt.Sprint("table ", since, ", key ", i, ": ", a.Block))
				}
			}
		})
	}
	for number := range 300 {
		publish(number + 1)
	}
	stop.Store(true)
	readers.Wait()
}
