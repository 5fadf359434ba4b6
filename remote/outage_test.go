package remote

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	store "github.com/cellserver/cellserver/remote/engine"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// TestEveryAskIsAnsweredInTime: whatever the engine does, and at every step, an ask has one answer
// at its deadline, and soon after the engine is back it decides again.
func TestEveryAskIsAnsweredInTime(t *testing.T) {
	for name, fail := range map[string]func(m *machine){
		"nothing arrives": func(m *machine) { m.drops = 1 },
		"no reply":        func(m *machine) { m.silences = 1 },
		"resets":          func(m *machine) { m.cuts = 1 },
		"slow":            func(m *machine) { m.there = 300 * time.Millisecond },
		"full":            func(m *machine) { m.refuses = &store.Error{Reason: "OOM", NotDone: true} },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(1)
			well := network{there: time.Millisecond, back: time.Millisecond, timeout: 30 * time.Millisecond}
			s := serve(c.join(well), bounds())
			failing := func() { fail(s.machine) }
			c.after(500*time.Millisecond, failing)
			c.after(1500*time.Millisecond, func() { s.network, s.refuses = well, nil })
			answers, failed, late, back := 0, 0, 0, time.Duration(0)
			submitted := 0
			c.every(time.Millisecond, 4*time.Second, func() {
				submitted++
				at := s.Elapsed()
				answered := false
				a := take(t, fmt.Sprint("k", submitted%5), 1<<40, 1)
				s.Submit([]*decide.Ask{a, take(t, "hot", 1<<40, 1)}, false, func() {
					require.False(t, answered)
					answered = true
					answers++
					if s.Elapsed()-at > s.limits.timeout {
						late++
					}
					if a.Err != nil {
						failed++
						back = s.Elapsed()
					}
				})
			})
			c.runFor(6 * time.Second)
			require.Equal(t, submitted, answers)
			require.Zero(t, late)
			require.Greater(t, failed, 900)
			require.Less(t, back, 3500*time.Millisecond)
			require.Empty(t, s.queued())
			require.Less(t, back, 1500*time.Millisecond+400*time.Millisecond, "what was sent in the outage is waited for")
		})
	}
}

// TestAnOutageLeavesNoGoroutines: asks that wait for an engine take memory, but no goroutines.
func TestAnOutageLeavesNoGoroutines(t *testing.T) {
	i := newInstant()
	dead := &unreachable{instant: i}
	l := bounds()
	l.timeout = time.Second
	s := newStore(dead, i, &refusing{}, l)
	before := runtime.NumGoroutine()
	done := make(chan struct{}, 20_000)
	for n := range 20_000 {
		s.Submit([]*decide.Ask{take(t, fmt.Sprint(n%100), 5, 1)}, false, func() { done <- struct{}{} })
	}
	// An ask whose deadline has come has a goroutine for a moment.
	if now := runtime.NumGoroutine(); i.Elapsed() < l.timeout {
		require.Less(t, now, before+20)
	}
	for range 20_000 {
		<-done
	}
}

// unreachable is an engine that never answers.
type unreachable struct{ *instant }

func (*unreachable) Get([]byte, func([]byte, error)) {}

// TestAChargeThatWasAnsweredWithAnErrorIsUndone in every family: by restoring the state before, or,
// after a later write of another server, by giving back the units.
func TestAChargeThatWasAnsweredWithAnErrorIsUndone(t *testing.T) {
	families := asks(t)
	families["log"] = func(key string) *decide.Ask {
		return &decide.Ask{Family: decide.Window, Key: []byte(key), Window: slidingwindow.Call{
			Mode: slidingwindow.Log, Limit: 1000, Window: 24 * time.Hour, Quantity: 1,
		}}
	}
	families["interval"] = func(key string) *decide.Ask {
		return &decide.Ask{Family: decide.Bucket, Key: []byte(key), Bucket: tokenbucket.Call{
			Mode: tokenbucket.Interval, Capacity: 1000, Init: 1000, Count: 1, Period: 1000 * time.Hour, Interval: time.Hour, Quantity: 1,
		}}
	}
	for family, ask := range families {
		for _, others := range []int{0, 1} {
			for _, first := range []int{0, 3} {
				t.Run(fmt.Sprint(family, " ", others, " ", first), func(t *testing.T) {
					c := newCloud(1)
					well := network{there: time.Millisecond, back: time.Millisecond}
					s, other := serve(c.join(well), bounds()), serve(c.join(well), bounds())
					for range first {
						s.call(t, ask("k"))
					}
					s.silences = 1
					for range 2 {
						a := ask("k")
						s.Submit([]*decide.Ask{a}, false, func() { require.Error(t, a.Err) })
					}
					if first == 0 {
						// The first exchange reads. The test loses the write, not the read.
						s.silences = 0
						s.runFor(2500 * time.Microsecond)
						s.silences = 1
					}
					s.runFor(time.Second)
					held := charged(c.look([]byte("cs:k")), c.civil(), time.Hour)
					require.Greater(t, held, int64(first), "charged for an error")
					for range others {
						other.call(t, ask("k"))
					}
					s.silences = 0
					s.call(t, admin("k", decide.Exists))
					s.runFor(time.Second)
					require.EqualValues(t, first+others, charged(c.look([]byte("cs:k")), c.civil(), time.Hour))
					require.Positive(t, s.count.undone.Load())
					require.Zero(t, s.count.kept.Load())
				})
			}
		}
	}
}

// TestALeaseForWhichAnErrorWasAnsweredIsReleased unless it was held before.
func TestALeaseForWhichAnErrorWasAnsweredIsReleased(t *testing.T) {
	acquire := func(member string) *decide.Ask {
		return &decide.Ask{Family: decide.Lease, Key: []byte("k"), Lease: concurrency.Call{Member: []byte(member), Limit: 9, Lease: time.Hour}}
	}
	c := newCloud(1)
	s := serve(c.join(network{there: time.Millisecond, back: time.Millisecond}), bounds())
	s.call(t, acquire("a"))
	s.silences = 1
	a, b := acquire("a"), acquire("b")
	a.Lease.Lease = 2 * time.Hour
	s.Submit([]*decide.Ask{a}, false, func() {})
	s.runFor(200 * time.Millisecond)
	s.silences = 0
	s.call(t, admin("k", decide.Exists))
	s.silences = 1
	s.Submit([]*decide.Ask{b}, false, func() {})
	s.runFor(200 * time.Millisecond)
	s.silences = 0
	s.call(t, admin("k", decide.Exists))
	s.runFor(time.Second)
	v, err := decode(c.look([]byte("cs:k")))
	require.NoError(t, err)
	holder := func(member string) bool {
		x := acquire(member)
		x.Now = c.civil()
		return holds(&v.entry, x)
	}
	require.True(t, holder("a"))
	require.False(t, holder("b"))
}

// TestWhatTheEngineLostIsRepaired: a server that remembers a later state than that in the engine
// decides on the remembered one.
func TestWhatTheEngineLostIsRepaired(t *testing.T) {
	c := newCloud(1)
	well := network{there: time.Millisecond, back: time.Millisecond}
	s, other := serve(c.join(well), bounds()), serve(c.join(well), bounds())
	for range 10 {
		s.call(t, take(t, "k", 100, 1))
		c.runFor(50 * time.Millisecond)
	}
	c.failover(240*time.Millisecond, 0)
	require.EqualValues(t, 6, s.used("k"))
	s.call(t, take(t, "k", 100, 1), take(t, "k", 100, 1))
	require.EqualValues(t, 12, s.used("k"))
	require.EqualValues(t, 1, s.count.repaired.Load())
	other.call(t, take(t, "k", 100, 1))
	require.EqualValues(t, 13, s.used("k"))
	s.call(t, admin("k", decide.Delete), take(t, "k", 100, 1))
	require.EqualValues(t, 1, s.used("k"), "a key that is not there was reset")
}

// TestRepairBoundsWhatAFailoverLoses: far less is lost than without repair.
func TestRepairBoundsWhatAFailoverLoses(t *testing.T) {
	c := newCloud(3)
	var told []*toll
	for range 4 {
		s := serve(c.join(network{there: 100 * time.Microsecond, back: 100 * time.Microsecond}), bounds())
		told = append(told, s.callers(8, 4*time.Millisecond, 4*time.Second, func() *decide.Ask { return take(t, "k", 1<<40, 1) }))
	}
	c.every(400*time.Millisecond, 4*time.Second, func() { c.failover(200*time.Millisecond, 0) })
	c.runUntil(5 * time.Second)
	var admitted int64
	for _, told := range told {
		require.Zero(t, told.failed)
		admitted += told.admitted
	}
	lost := admitted - charged(c.look([]byte("cs:k")), c.civil(), time.Hour)
	t.Logf("%d admitted, %d of them lost in 10 failovers", admitted, lost)
	require.Less(t, lost, admitted/20, "without repair half of them are")
	require.GreaterOrEqual(t, lost, int64(0))
}

// TestForeignValuesStay: the user of the engine has other keys there.
func TestForeignValuesStay(t *testing.T) {
	c := newCloud(1)
	s := serve(c.join(network{}), bounds())
	c.put([]byte("cs:k"), []byte("a string that somebody has stored"), time.Hour)
	for _, a := range []*decide.Ask{take(t, "k", 5, 1), take(t, "k", 5, -1), admin("k", decide.Delete), admin("k", decide.Expiry), admin("k", decide.Text)} {
		s.call(t, a)
		require.ErrorIs(t, a.Err, limit.ErrWrongType)
	}
	a := admin("k", decide.Exists)
	s.call(t, a)
	require.NoError(t, a.Err)
	require.True(t, a.Result.Found)
	require.Equal(t, "a string that somebody has stored", string(c.look([]byte("cs:k"))))
}

// TestAnEmptyStringIsNoKey: every command treats an empty string as an absent key, and stores over
// it, because a bounded read cannot tell the two apart.
func TestAnEmptyStringIsNoKey(t *testing.T) {
	c := newCloud(1)
	s := serve(c.join(network{}), bounds())
	for _, key := range []string{"cs:{x}k", "cs:{x}several", "cs:{x}looked"} {
		c.stored[key] = kept{raw: []byte{}, until: time.Hour}
	}
	for _, call := range []decide.Op{decide.Exists, decide.Expiry, decide.Delete} {
		a := admin("{x}looked", call)
		s.call(t, a)
		require.NoError(t, a.Err)
		require.False(t, a.Result.Found)
	}
	look, one, several := take(t, "{x}looked", 5, 0), take(t, "{x}k", 5, 1), multi(t, 5, "{x}several", "{x}other")
	for _, a := range []*decide.Ask{look, one, several} {
		s.call(t, a)
		require.NoError(t, a.Err)
		require.True(t, a.Decision.Allowed())
	}
	require.NotEmpty(t, c.look([]byte("cs:{x}k")))
	require.NotEmpty(t, c.look([]byte("cs:{x}several")))
}

// TestAValueHasABound: a call that would make it larger is refused, and all others work.
func TestAValueHasABound(t *testing.T) {
	c := newCloud(1)
	l := bounds()
	l.maxValue = 2000
	s := serve(c.join(network{}), l)
	var errs, fine int
	for range 200 {
		a := &decide.Ask{Family: decide.Window, Key: []byte("log"), Window: slidingwindow.Call{Mode: slidingwindow.Log, Limit: 1000, Window: time.Hour, Quantity: 1}}
		b := &decide.Ask{Family: decide.Lease, Key: []byte("set"), Lease: concurrency.Call{Member: fmt.Append(nil, "member ", errs+fine), Limit: 1000, Lease: time.Hour}}
		s.call(t, a)
		s.call(t, b)
		c.runFor(time.Millisecond)
		for _, x := range []*decide.Ask{a, b} {
			if x.Err == nil {
				fine++
				continue
			}
			errs++
		}
		if a.Err != nil {
			require.Equal(t, limit.ErrTooLarge, a.Err)
		}
		if b.Err != nil {
			require.Equal(t, limit.ErrTooLarge, b.Err)
		}
	}
	require.Positive(t, fine)
	require.Positive(t, errs)
	require.LessOrEqual(t, len(c.look([]byte("cs:log"))), 2000)
	require.LessOrEqual(t, len(c.look([]byte("cs:set"))), 2000)
	v, err := decode(c.look([]byte("cs:set")))
	require.NoError(t, err)
	require.True(t, v.entry.Kind.IsLease())
	require.EqualValues(t, errs, s.count.tooLarge.Load())
}

// TestARefusalIsRepeated until its time is over, unless this server frees units.
func TestARefusalIsRepeated(t *testing.T) {
	c := newCloud(1)
	l := bounds()
	l.denials = 100 * time.Millisecond
	s := serve(c.join(network{there: time.Millisecond, back: time.Millisecond}), l)
	one := func(quantity int64) *decide.Ask { return take(t, "k", 2, quantity) }
	s.call(t, one(2))
	a := one(1)
	s.call(t, a)
	require.False(t, a.Decision.Allowed())
	asked := c.ops

	c.runFor(40 * time.Millisecond)
	b := one(1)
	s.call(t, b)
	require.Equal(t, asked, c.ops, "from memory")
	require.False(t, b.Decision.Allowed())
	passed := b.Now.Sub(a.Now)
	require.Equal(t, a.Decision.RetryAfter-passed, b.Decision.RetryAfter)
	require.Equal(t, a.Decision.ResetAfter-passed, b.Decision.ResetAfter)
	require.EqualValues(t, 1, s.count.cachedDenials.Load())

	keeping := one(1)
	keeping.Keep = 1
	s.call(t, keeping)
	require.NotEqual(t, asked, c.ops, "another number of units that stay")
	asked = c.ops
	s.call(t, keeping)
	require.Equal(t, asked, c.ops, "from memory")
	require.Greater(t, keeping.Decision.RetryAfter, b.Decision.RetryAfter)

	s.call(t, one(0))
	require.NotEqual(t, asked, c.ops, "a look is no refusal")
	s.call(t, one(1))
	asked = c.ops
	s.call(t, one(2))
	require.NotEqual(t, asked, c.ops, "another quantity")
	s.call(t, one(2))
	c.runFor(100 * time.Millisecond)
	asked = c.ops
	s.call(t, one(2))
	require.NotEqual(t, asked, c.ops, "it is too old")
	s.call(t, one(-2))
	d := one(2)
	s.call(t, d)
	require.True(t, d.Decision.Allowed(), "given back")

	s.call(t, one(1))
	e, f := one(-1), one(1)
	s.call(t, e, f)
	require.True(t, f.Decision.Allowed(), "behind what gives back nothing is repeated")
}

// TestARefusalOfALaterInstantIsRepeatedNoLonger: the latest decision about a key was made with a
// clock that is ahead. Units that another server frees become visible at the usual time, not after
// it.
func TestARefusalOfALaterInstantIsRepeatedNoLonger(t *testing.T) {
	c := newCloud(1)
	l := bounds()
	l.denials = 100 * time.Millisecond
	s, ahead := serve(c.join(network{}), l), serve(c.join(network{}), l)
	ahead.offset = time.Minute
	ahead.call(t, take(t, "k", 1, 1))
	a := take(t, "k", 1, 1)
	s.call(t, a)
	require.False(t, a.Decision.Allowed())
	ahead.call(t, admin("k", decide.Delete))
	s.call(t, a)
	require.EqualValues(t, 1, s.count.cachedDenials.Load())
	c.runFor(100 * time.Millisecond)
	s.call(t, a)
	require.True(t, a.Decision.Allowed())
}

func TestARefusalThatEndsSoonIsNotRepeatedAfterwards(t *testing.T) {
	c := newCloud(1)
	l := bounds()
	l.denials = 100 * time.Millisecond
	s := serve(c.join(network{}), l)
	ask := func() *decide.Ask {
		return &decide.Ask{Family: decide.Window, Key: []byte("k"), Window: slidingwindow.Call{
			Mode: slidingwindow.Log, Limit: 1, Window: 20 * time.Millisecond, Quantity: 1,
		}}
	}
	s.call(t, ask())
	admitted := 0
	for range 200 {
		c.runFor(time.Millisecond)
		a := ask()
		s.call(t, a)
		if a.Decision.Allowed() {
			admitted++
		}
	}
	require.Equal(t, 10, admitted)
	require.Greater(t, s.count.cachedDenials.Load(), int64(150))
}

// TestMemoryIsBounded in keys and in bytes.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it fills the memory")
	}
	c := newCloud(1)
	s := serve(c.join(network{}), bounds())
	for n := range mostIdle * 3 / 2 {
		s.call(t, take(t, fmt.Sprint(n), 5, 1))
		c.values.changes = nil
		if n%1000 == 0 {
			clear(c.stored)
		}
	}
	held, bytes := s.remembered()
	require.LessOrEqual(t, held, mostIdle)
	require.Greater(t, held, mostIdle/2)
	require.Less(t, bytes, mostIdleBytes)

	large := func(key string) *decide.Ask {
		return &decide.Ask{Family: decide.Window, Key: []byte(key), Window: slidingwindow.Call{
			Mode: slidingwindow.Buckets, Slots: 1000, Limit: 1000, Window: time.Hour, Quantity: 1,
		}}
	}
	for n := range 2 * mostIdleBytes / 8000 {
		s.call(t, large(fmt.Sprint("large ", n)))
		c.values.changes = nil
		clear(c.stored)
	}
	_, bytes = s.remembered()
	require.LessOrEqual(t, bytes, mostIdleBytes)
	require.Greater(t, bytes, mostIdleBytes/2)
	s.forget()
	for i := range s.shards {
		for _, k := range s.shards[i].keys {
			require.Nil(t, k.memory.value.raw)
		}
	}
}

// remembered returns the number of remembered keys and their bytes.
func (s *server) remembered() (keys, bytes int) {
	for i := range s.shards {
		keys += len(s.shards[i].keys)
		bytes += s.shards[i].bytes
	}
	return keys, bytes
}

// TestTurnsComeInOrder: the turn of a group comes after earlier and before later submissions, at
// all of its keys.
func TestTurnsComeInOrder(t *testing.T) {
	c := newCloud(1)
	s := serve(c.join(network{there: time.Millisecond, back: time.Millisecond}), bounds())
	var order []string
	note := func(what string) func() { return func() { order = append(order, what) } }
	s.Submit([]*decide.Ask{take(t, "a", 9, 1)}, false, note("first"))
	var held *turn
	s.turnAt([][]byte{[]byte("a"), []byte("b")}, func(t *turn) { held = t; note("turn")() })
	s.Submit([]*decide.Ask{take(t, "b", 9, 1)}, false, note("behind"))
	s.Submit([]*decide.Ask{take(t, "c", 9, 1)}, false, note("elsewhere"))
	s.runFor(20 * time.Millisecond)
	require.ElementsMatch(t, []string{"first", "elsewhere", "turn"}, order)
	held.end()
	s.runFor(20 * time.Millisecond)
	require.Equal(t, "behind", order[3])
	require.Empty(t, s.queued())
}
