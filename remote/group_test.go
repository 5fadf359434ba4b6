package remote

import (
	"fmt"
	"math/rand/v2"
	"strings"
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

// multi asks for one unit of each key, of which each has that many.
func multi(t testing.TB, most int64, keys ...string) *decide.Ask {
	t.Helper()
	a := &decide.Ask{Family: decide.Several, Details: make([]limit.Decision, len(keys))}
	for _, key := range keys {
		c := decide.Clause{Key: []byte(key)}
		last := key[len(key)-1] % 3
		if strings.HasSuffix(key, "lease") {
			last = 3
		}
		switch last {
		case 0:
			q := perHour(t, most)
			c.Quota, c.Quantity = &q, 1
		case 1:
			c.Window = &slidingwindow.Call{Mode: slidingwindow.Fixed, Limit: most, Window: 100 * time.Hour, Quantity: 1}
		case 2:
			c.Bucket = &tokenbucket.Call{
				Mode: tokenbucket.Greedy, Capacity: most, Init: most, Count: 1, Period: time.Hour, Interval: time.Hour, Quantity: 1,
			}
		case 3:
			c.Lease = &concurrency.Call{Member: []byte("m"), Limit: most, Lease: 100 * time.Hour}
		}
		a.Clauses = append(a.Clauses, c)
	}
	return a
}

func TestMultiInOneSlotWritesAllAtOnce(t *testing.T) {
	c := newCloud(1)
	s := serve(c.join(network{there: time.Millisecond, back: time.Millisecond}), bounds())
	keys := []string{"{u}1", "{u}2", "{u}3"}
	for i := range int64(3) {
		a := multi(t, 2, keys...)
		s.call(t, a)
		require.NoError(t, a.Err)
		require.Equal(t, i == 2, a.Refused)
		for n, d := range a.Details {
			require.Equal(t, max(0, 1-i), d.Remaining, "clause %d of call %d", n, i)
		}
	}
	for _, key := range keys {
		require.EqualValues(t, 2, s.used(key))
	}
	require.Equal(t, 2, c.ops.swaps, "a refusal writes nothing")
}

func TestMultiAcrossSlotsWritesEachOrNothing(t *testing.T) {
	c := newCloud(1)
	s := serve(c.join(network{there: time.Millisecond, back: time.Millisecond}), bounds())
	keys := []string{"a", "b", "c"}
	for range 8 {
		s.call(t, multi(t, 9, "a"))
	}
	for i := range int64(2) {
		a := multi(t, 9, keys...)
		s.call(t, a)
		require.NoError(t, a.Err)
		require.Equal(t, i == 1, a.Refused)
		require.Equal(t, []int64{0, 8, 8}, []int64{a.Details[0].Remaining, a.Details[1].Remaining, a.Details[2].Remaining})
	}
	require.EqualValues(t, 9, s.used("a"))
	require.EqualValues(t, 1, s.used("b"))
	require.EqualValues(t, 1, s.used("c"))
	require.Equal(t, 8+3, c.ops.swaps)
}

func TestMultiAcrossSlotsMayBeRefused(t *testing.T) {
	l := bounds()
	l.refuseAcross = true
	s := serve(newCloud(1).join(network{}), l)
	a := multi(t, 9, "a", "b")
	s.call(t, a)
	require.ErrorIs(t, a.Err, decide.ErrCrossSlot)
	require.Zero(t, s.ops.gets+s.ops.swaps)
	a = multi(t, 9, "{a}", "{a}b")
	s.call(t, a)
	require.NoError(t, a.Err)
}

// TestMultiAgreesWithTheRulesOfPackageDecide: random calls, in one slot and across slots, have the
// same answers as on entries in memory at the same instants.
func TestMultiAgreesWithTheRulesOfPackageDecide(t *testing.T) {
	for _, tagged := range []string{"{one}", ""} {
		r := rand.New(rand.NewPCG(1, 2))
		c := newCloud(1)
		s := serve(c.join(network{}), bounds())
		model := map[string]entry.Entry{}
		var rounds decide.Rounds
		for i := range 3000 {
			s.runFor(time.Duration(r.IntN(int(time.Second))))
			a := randomMulti(t, r, tagged)
			b := *a
			b.Own(nil)
			s.call(t, a)
			entryOf := func(i int) *entry.Entry {
				e := model[string(b.Clauses[i].Key)]
				if e.Expiry <= s.civil() {
					e = entry.Entry{}
				}
				return &e
			}
			err := rounds.All(&b, s.civil(), entryOf)
			require.Equal(t, err, a.Err, "call %d", i)
			if err != nil {
				continue
			}
			require.Equal(t, b.Now, a.Now)
			require.Equal(t, b.Refused, a.Refused, "call %d", i)
			require.Equal(t, b.Missing, a.Missing, "call %d", i)
			require.Equal(t, b.Details, a.Details, "call %d%s", i, tagged)
			if !rounds.Changes || b.Refused && tagged == "" && len(b.Clauses) > 1 {
				continue
			}
			for n := range b.Clauses {
				e := entryOf(n)
				require.NoError(t, rounds.Again(n, e))
				switch rounds.Action {
				case decide.Store:
					model[string(b.Clauses[n].Key)] = entry.Entry{Kind: rounds.Kind, Expiry: rounds.Expiry, Value: rounds.Apply(e.Value, nil)}
				case decide.Remove:
					delete(model, string(b.Clauses[n].Key))
				}
			}
		}
	}
}

func randomMulti(t testing.TB, r *rand.Rand, tagged string) *decide.Ask {
	var keys []string
	for _, n := range r.Perm(6)[:1+r.IntN(4)] {
		keys = append(keys, tagged+[]string{"0", "1", "2", "3", "4", "lease"}[n])
	}
	a := multi(t, int64(1+r.IntN(20)), keys...)
	for i := range a.Clauses {
		c := &a.Clauses[i]
		quantity := int64(r.IntN(5)) - 1
		switch {
		case c.Quota != nil:
			c.Quantity = quantity
		case c.Window != nil:
			c.Window.Quantity, c.Window.Window = quantity, time.Duration(1+r.IntN(3))*time.Second
		case c.Lease != nil:
			c.Lease.Member, c.Lease.Lease = fmt.Append(nil, r.IntN(20)), time.Duration(1+r.IntN(5))*time.Second
		default:
			c.Bucket.Quantity, c.Bucket.Interval = quantity, time.Duration(1+r.IntN(3))*time.Second/4
			c.Bucket.Init = r.Int64N(c.Bucket.Capacity + 1)
		}
		c.Peek = r.IntN(20) == 0
	}
	if r.IntN(3) == 0 {
		inPart(a, int64(r.IntN(5)))
	}
	return a
}

// inPart makes a ask for up to n units.
func inPart(a *decide.Ask, n int64) *decide.Ask {
	a.Partial = true
	for i := range a.Clauses {
		switch c := &a.Clauses[i]; {
		case c.Quota != nil:
			c.Quantity = n
		case c.Window != nil:
			c.Window.Quantity = n
		case c.Bucket != nil:
			c.Bucket.Quantity = n
		}
	}
	return a
}

// TestMultiWithALease: in one slot and across slots, an admitted member holds a lease, and a
// refusal does not change it.
func TestMultiWithALease(t *testing.T) {
	for _, tagged := range []string{"{one}", ""} {
		c := newCloud(1)
		s := serve(c.join(network{there: time.Millisecond, back: time.Millisecond}), bounds())
		call := func(member string) *decide.Ask {
			a := multi(t, 2, tagged+"a", tagged+"lease")
			a.Clauses[1].Lease.Member = []byte(member)
			s.call(t, a)
			require.NoError(t, a.Err)
			return a
		}
		require.False(t, call("m").Refused)
		require.False(t, call("n").Refused)
		swaps := c.ops.swaps
		a := call("o")
		require.True(t, a.Refused)
		require.EqualValues(t, 1, a.Details[1].Refused)
		require.True(t, call("m").Refused, "by the other clause")
		require.Equal(t, swaps, c.ops.swaps)
		require.True(t, s.releases(t, tagged+"lease", "n"), "it held a lease")
		require.False(t, s.releases(t, tagged+"lease", "o"))
	}
}

// releases gives back the lease of a member, and reports whether it held one.
func (s *server) releases(t testing.TB, key, member string) bool {
	t.Helper()
	a := &decide.Ask{Key: []byte(key), Family: decide.Lease, Lease: concurrency.Call{Op: concurrency.Release, Member: []byte(member)}}
	s.call(t, a)
	require.NoError(t, a.Err)
	return a.Decision.Allowed()
}

// TestMultiUndoesALease: two servers race for two keys in two slots. A call that is refused after
// it has written a lease undoes the lease, or counts that it could not.
func TestMultiUndoesALease(t *testing.T) {
	undone := int64(0)
	for seed := range seeds(40) {
		c := newCloud(seed)
		n := network{there: time.Millisecond, back: time.Millisecond, jitter: time.Millisecond}
		one, other := serve(c.join(n), bounds()), serve(c.join(n), bounds())
		admitted := map[string]bool{}
		for i, s := range []*server{one, other, one, other} {
			member := fmt.Sprint("m", i)
			a := multi(t, 2, "b", "lease")
			a.Clauses[1].Lease.Member, a.Clauses[1].Lease.Limit = []byte(member), 9
			s.Submit([]*decide.Ask{a}, false, func() {
				require.NoError(t, a.Err)
				admitted[member] = !a.Refused
			})
		}
		c.runFor(time.Second)
		require.Len(t, admitted, 4, "seed %d", seed)
		require.EqualValues(t, 2, one.used("b"), "seed %d", seed)
		kept := one.count.kept.Load() + other.count.kept.Load()
		undone += one.count.undone.Load() + other.count.undone.Load()
		for member, held := range admitted {
			if one.releases(t, "lease", member) != held {
				require.False(t, held, "seed %d: %s", seed, member)
				kept--
			}
		}
		require.GreaterOrEqual(t, kept, int64(0), "seed %d", seed)
	}
	require.Positive(t, undone)
}

// crowd has callers of several servers, each of which calls again as soon as it is answered.
type crowd struct {
	servers  []*server
	admitted map[string]int64 // by key
	refused  int
	errors   int
}

func (c *crowd) call(s *server, until time.Duration, ask func() *decide.Ask) {
	a := ask()
	s.Submit([]*decide.Ask{a}, false, func() {
		switch {
		case a.Err != nil:
			c.errors++
		case a.Refused:
			c.refused++
		default:
			for i := range a.Clauses {
				c.admitted[string(a.Clauses[i].Key)] += a.Granted()
			}
		}
		if s.Elapsed() < until {
			s.AfterFunc(s.UpTo(time.Millisecond), func() { c.call(s, until, ask) })
		}
	})
}

// sum returns the sum of the servers' counters.
func (c *crowd) sum(of func(*counters) int64) (n int64) {
	for _, s := range c.servers {
		n += of(&s.Store.count)
	}
	return n
}

// seeds returns the number of histories of a test: fewer in short tests.
func seeds(n int) uint64 {
	return uint64(effort.Steps((n+3)/4, n))
}

// TestMultiAcrossSlotsChargesWhatItAdmits: four servers with eight callers each race for three keys
// over a network that loses requests and replies. The admitted units are charged.
func TestMultiAcrossSlotsChargesWhatItAdmits(t *testing.T) {
	keys := []string{"a", "b", "c"}
	for seed := range seeds(10) {
		c := newCloud(seed)
		all := &crowd{admitted: map[string]int64{}}
		for range 4 {
			n := network{there: 200 * time.Microsecond, back: 200 * time.Microsecond, jitter: 300 * time.Microsecond}
			n.timeout = 5 * time.Millisecond
			if seed%2 == 1 {
				n.drops, n.cuts, n.silences = 0.01, 0.02, 0.02
			}
			all.servers = append(all.servers, serve(c.join(n), bounds()))
		}
		for i, s := range all.servers {
			for k := range 8 {
				all.call(s, 2*time.Second, func() *decide.Ask {
					a := multi(t, 300+int64(seed)*100, keys[(i+k)%3], keys[(i+k+1)%3])
					if k < 2 {
						inPart(a, 3)
					}
					return a
				})
			}
		}
		c.runFor(10 * time.Second)
		for _, key := range keys {
			used := all.servers[0].used(key)
			lost := all.sum(func(n *counters) int64 { return n.unknown.Load() + n.kept.Load() })
			require.GreaterOrEqual(t, used, all.admitted[key], "seed %d: %s", seed, key)
			require.LessOrEqual(t, used, all.admitted[key]+lost, "seed %d: %s", seed, key)
		}
		t.Log(seed, all.admitted, all.refused, all.errors,
			"undone", all.sum(func(n *counters) int64 { return n.undone.Load() }),
			"refunded", all.sum(func(n *counters) int64 { return n.refunded.Load() }),
			"kept", all.sum(func(n *counters) int64 { return n.kept.Load() }),
			"races", all.sum(func(n *counters) int64 { return n.races.Load() }))
	}
}

// TestMultiWaitsItsTurn: calls about a key that a group holds are answered in the order of their
// submission.
func TestMultiWaitsItsTurn(t *testing.T) {
	c := newCloud(1)
	s := serve(c.join(network{there: time.Millisecond, back: time.Millisecond}), bounds())
	for _, other := range []string{"{b}", "z"} {
		var order []int
		left := []int64{}
		for i := range 6 {
			a := multi(t, 100, "b", other)
			if i%2 == 0 {
				a = &decide.Ask{Family: decide.Bucket, Key: []byte("b"), Bucket: *a.Clauses[0].Bucket}
			}
			s.Submit([]*decide.Ask{a}, false, func() {
				require.NoError(t, a.Err)
				order = append(order, i)
				d := a.Decision
				if a.Family == decide.Several {
					d = a.Details[0]
				}
				left = append(left, d.Remaining)
			})
		}
		s.runFor(time.Second)
		require.Equal(t, []int{0, 1, 2, 3, 4, 5}, order)
		require.IsDecreasing(t, left)
		require.Len(t, left, 6)
	}
}

// transact submits asks as those of a transaction.
func (s *server) transact(t testing.TB, asks ...*decide.Ask) {
	t.Helper()
	answered := false
	s.Submit(asks, true, func() { answered = true })
	for !answered {
		require.NotEmpty(t, s.due)
		s.runUntil(s.due[0].at)
	}
}

func TestTransactionInOneSlotIsOneWrite(t *testing.T) {
	c := newCloud(1)
	s := serve(c.join(network{there: time.Millisecond, back: time.Millisecond}), bounds())
	one, again, two := take(t, "{x}a", 3, 2), take(t, "{x}a", 3, 2), multi(t, 1, "{x}b", "{x}c")
	kind, gone, exists := admin("{x}b", decide.Type), admin("{x}c", decide.Delete), admin("{x}c", decide.Exists)
	s.transact(t, one, again, two, kind, gone, exists)
	for _, a := range []*decide.Ask{one, again, two, kind, gone, exists} {
		require.NoError(t, a.Err)
	}
	require.True(t, one.Decision.Allowed())
	require.False(t, again.Decision.Allowed(), "each sees what those before it have left")
	require.Equal(t, one.Now, again.Now)
	require.Equal(t, one.Now, two.Now, "one instant")
	require.False(t, two.Refused)
	require.Equal(t, "ratelimit", kind.Result.Text)
	require.True(t, gone.Result.Done)
	require.False(t, exists.Result.Found)
	require.EqualValues(t, 2, s.used("{x}a"))
	require.EqualValues(t, 1, s.used("{x}b"))
	require.Zero(t, s.used("{x}c"))
	require.Equal(t, 1, c.ops.swaps)
	require.Equal(t, 3, c.ops.gets)
}

func TestTransactionAcrossSlotsIsItsCommands(t *testing.T) {
	s := serve(newCloud(1).join(network{}), bounds())
	a, b, both := take(t, "a", 1, 1), take(t, "x", 1, 1), multi(t, 1, "b", "c")
	s.transact(t, a, b, both)
	require.True(t, a.Decision.Allowed() && b.Decision.Allowed() && !both.Refused)
	require.Equal(t, 4, s.ops.swaps)
}

func TestTransactionLeavesWhatSomebodyElseHasStored(t *testing.T) {
	s := serve(newCloud(1).join(network{}), bounds())
	s.put([]byte("cs:{x}s"), []byte("text"), time.Hour)
	a, b, there := take(t, "{x}s", 1, 1), take(t, "{x}a", 1, 1), admin("{x}s", decide.Exists)
	both := multi(t, 9, "{x}b", "{x}s")
	s.transact(t, a, b, there, both)
	require.ErrorIs(t, a.Err, limit.ErrWrongType)
	require.NoError(t, b.Err)
	require.True(t, there.Result.Found)
	require.ErrorIs(t, both.Err, limit.ErrWrongType)
	require.Equal(t, "text", string(s.get([]byte("cs:{x}s"))))
	require.Zero(t, s.used("{x}b"))
}

// TestTransactionsOfManyServersAreWhole: each transaction charges two keys alike, so that they
// remain equal in any race, over a network that loses requests and replies.
func TestTransactionsOfManyServersAreWhole(t *testing.T) {
	for seed := range seeds(6) {
		c := newCloud(seed)
		admitted := int64(0)
		var servers []*server
		for range 4 {
			n := network{there: 200 * time.Microsecond, back: 200 * time.Microsecond, jitter: 300 * time.Microsecond}
			n.timeout = 5 * time.Millisecond
			if seed%2 == 1 {
				n.drops, n.cuts, n.silences, n.repeats, n.late = 0.01, 0.02, 0.02, 0.02, 20*time.Millisecond
			}
			servers = append(servers, serve(c.join(n), bounds()))
		}
		for _, s := range servers {
			var again func()
			again = func() {
				x, y := take(t, "{p}x", 1000, 1), take(t, "{p}y", 1000, 1)
				s.Submit([]*decide.Ask{x, y}, true, func() {
					require.Equal(t, x.Err == nil, y.Err == nil)
					if x.Err == nil {
						require.Equal(t, x.Decision, y.Decision)
					}
					if x.Err == nil && x.Decision.Allowed() {
						admitted++
					}
					s.AfterFunc(s.UpTo(2*time.Millisecond), func() {
						if s.Elapsed() < time.Second {
							again()
						}
					})
				})
			}
			for range 4 {
				again()
			}
		}
		c.runFor(10 * time.Second)
		var lost int64
		for _, s := range servers {
			lost += s.Store.count.unknown.Load() + s.Store.count.kept.Load()
		}
		x, y := servers[0].used("{p}x"), servers[0].used("{p}y")
		require.GreaterOrEqual(t, x, admitted)
		require.LessOrEqual(t, x, admitted+lost)
		require.Equal(t, x, y)
		require.Greater(t, admitted, int64(200))
	}
}
