package remote

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/ban"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote/states"
	"github.com/cellserver/cellserver/slidingwindow"
)

// These are the parts of a state of a [buying].
const (
	ofLimit   = iota + 1 // the limit, a window, a bucket or a cell by the key of the state
	ofCalls              // all calls, granted or not, of the first state of a call
	ofGranted            // granted calls
	ofDenied             // denied calls
	ofBans               // the bans
)

// initial is the number of units that are missing in a new bucket.
const initial = 5

// buying is a program about states that may be written one after another, as a call under several policies is. It charges
// the limits of all states and counts the call in one ask, and then counts the grant or the denial in each state.
type buying struct {
	t       testing.TB
	keys    []string
	most    int64
	ask     decide.Ask
	granted bool
	runs    int
	fails   error
	// units are those that the call takes of each state; nil means one of each.
	units []int64
	// wholly says that the states have to be written together.
	wholly bool
}

// buyer returns an ask that takes a unit of each of the states with the keys, of which each has most.
func buyer(t testing.TB, most int64, keys ...string) (*decide.Ask, *buying) {
	p := &buying{t: t, keys: keys, most: most}
	a := &decide.Ask{Family: decide.Joint, Key: []byte(keys[0]), Program: p}
	for _, key := range keys[1:] {
		a.Others = append(a.Others, []byte(key))
	}
	return a, p
}

func (p *buying) Run(decideOn func(*decide.Ask)) error {
	p.runs++
	p.granted = false
	p.ask = *multi(p.t, p.most, p.keys...)
	for i := range p.keys {
		c := &p.ask.Clauses[i]
		c.Key = keyOf(i, ofLimit)
		if c.Bucket != nil {
			c.Bucket.Capacity += initial
		}
		if p.units != nil {
			switch {
			case c.Window != nil:
				c.Window.Quantity = p.units[i]
			case c.Bucket != nil:
				c.Bucket.Quantity = p.units[i]
			default:
				c.Quantity = p.units[i]
			}
		}
	}
	p.ask.Clauses = append(p.ask.Clauses, decide.Clause{Key: keyOf(0, ofCalls), Window: oneMore(), Counts: true})
	p.ask.Details = make([]limit.Decision, len(p.ask.Clauses))
	decideOn(&p.ask)
	if p.ask.Err != nil {
		return p.ask.Err
	}
	p.granted = !p.ask.Refused
	for i := range p.keys {
		one := decide.Ask{Family: decide.Window, Key: keyOf(i, ofGranted), Window: *oneMore()}
		if !p.granted {
			one.Key = keyOf(i, ofDenied)
		}
		if decideOn(&one); one.Err != nil {
			return one.Err
		}
		banned := decide.Ask{Family: decide.Ban, Key: keyOf(i, ofBans), Denied: !p.granted && i == 0, Bans: &ban.Call{
			Refusals: 1 << 40, Window: time.Hour, Block: time.Minute, Factor: ban.Whole, Max: time.Minute,
		}}
		if decideOn(&banned); banned.Err != nil {
			return banned.Err
		}
	}
	return p.fails
}

// oneMore returns a call that counts one unit.
func oneMore() *slidingwindow.Call {
	return &slidingwindow.Call{Mode: slidingwindow.Fixed, Limit: 1 << 40, Window: 24 * 365 * time.Hour, Quantity: 1}
}

func keyOf(state, part int) []byte { return fmt.Appendf(nil, "%d%d", state, part) }

func (*buying) Guessed() bool { return true }

func (p *buying) Divides() bool { return !p.wholly }

func (p *buying) Number(key []byte) (n uint8, ok bool) { return key[1] - '0', len(p.keys) == 1 }

func (p *buying) Locate(key []byte) (state int, n uint8, ok bool) {
	return int(key[0] - '0'), key[1] - '0', len(key) == 2
}

// bought returns the units in the parts of a state.
func bought(t testing.TB, c *cloud, key string) (units [ofBans]int64) {
	t.Helper()
	v, err := decode(c.look([]byte("cs:" + key)))
	require.NoError(t, err)
	if v.raw == nil || v.entry.Expiry <= c.civil() {
		return units
	}
	require.Equal(t, states.Joint, v.entry.Kind)
	for _, p := range states.AppendLive(nil, v.entry.Value, c.civil()) {
		if p.Number == ofBans {
			continue
		}
		raw := append(head(p.Entry.Kind, 1, 1, 0, p.Entry.Expiry), p.Entry.Value...)
		units[p.Number] = charged(raw, c.civil(), time.Hour)
		if p.Number == ofLimit && p.Entry.Kind.IsBucket() {
			units[p.Number] -= initial
		}
	}
	return units
}

func TestJointsInSeveralSlotsAreWrittenBySlot(t *testing.T) {
	c := newCloud(1)
	s := serve(c.join(network{there: time.Millisecond, back: time.Millisecond}), bounds())
	keys := []string{"{x}a", "b", "c", "{x}b"}
	a, p := buyer(t, 1, keys...)
	s.call(t, a)
	require.NoError(t, a.Err)
	require.True(t, p.granted)
	require.Equal(t, 4*time.Millisecond, s.Elapsed(), "a read and a write")
	require.Equal(t, 3, c.ops.swaps, "two states are in one slot")
	grant := [ofBans]int64{ofLimit: 1, ofGranted: 1}
	first := grant
	first[ofCalls] = 1
	for i, key := range keys {
		want := grant
		if i == 0 {
			want = first
		}
		require.Equal(t, want, bought(t, c, key), key)
	}
	a, p = buyer(t, 1, "c", "d")
	s.call(t, a)
	require.NoError(t, a.Err)
	require.False(t, p.granted)
	require.Equal(t, 1, p.runs)
	require.Equal(t, [ofBans]int64{ofLimit: 1, ofCalls: 1, ofGranted: 1, ofDenied: 1}, bought(t, c, "c"))
	require.Equal(t, [ofBans]int64{ofDenied: 1}, bought(t, c, "d"), "each state has what the denial writes")

	swaps := c.ops.swaps
	a, p = buyer(t, 9, "a", "x")
	p.fails = limit.ErrFull
	s.call(t, a)
	require.ErrorIs(t, a.Err, limit.ErrFull)
	require.Equal(t, swaps, c.ops.swaps, "a run with an error changes nothing")
	c.put([]byte("cs:text"), []byte("text"), time.Hour)
	a, p = buyer(t, 9, "a", "text")
	s.call(t, a)
	require.ErrorIs(t, a.Err, limit.ErrWrongType)
	require.Zero(t, p.runs)
	require.Equal(t, swaps, c.ops.swaps)
	require.Zero(t, s.Store.count.races.Load()+s.Store.count.undone.Load())
}

// TestJointsInSeveralSlotsMayBeRefused: by the operator, or because their states have to be written together.
func TestJointsInSeveralSlotsMayBeRefused(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		l := bounds()
		l.refuseAcross = refuse
		s := serve(newCloud(1).join(network{}), l)
		a, p := buyer(t, 1, "a", "b")
		p.wholly = !refuse
		s.call(t, a)
		require.ErrorIs(t, a.Err, decide.ErrStatesApart)
		require.Zero(t, p.runs)
		require.Zero(t, s.ops.gets+s.ops.swaps)
		a, p = buyer(t, 1, "{x}a", "{x}b")
		p.wholly = true
		s.call(t, a)
		require.NoError(t, a.Err)
		require.True(t, p.granted)
	}
}

// meanwhile submits a call about the states a and b, and has f run after it has read them.
func meanwhile(t testing.TB, c *cloud, s *server, most int64, f func(other *server)) *buying {
	other := serve(c.join(network{}), bounds())
	a, p := buyer(t, most, "a", "b")
	answered := false
	s.Submit([]*decide.Ask{a}, false, func() { answered = true })
	c.after(2500*time.Microsecond, func() { f(other) })
	c.runFor(time.Second)
	require.True(t, answered)
	require.NoError(t, a.Err)
	return p
}

func TestJointsInSeveralSlotsAreTakenBack(t *testing.T) {
	buy := func(t testing.TB, other *server, most int64, keys ...string) {
		a, p := buyer(t, most, keys...)
		other.call(t, a)
		require.NoError(t, a.Err)
		require.True(t, p.granted)
	}
	world := func() (*cloud, *server) {
		c := newCloud(1)
		return c, serve(c.join(network{there: time.Millisecond, back: time.Millisecond}), bounds())
	}
	t.Run("still granted", func(t *testing.T) {
		c, s := world()
		buy(t, s, 2, "a")
		p := meanwhile(t, c, s, 2, func(other *server) { buy(t, other, 2, "b") })
		require.True(t, p.granted, "the last unit of both")
		require.Equal(t, 2, p.runs)
		require.Equal(t, [ofBans]int64{ofLimit: 2, ofCalls: 2, ofGranted: 2}, bought(t, c, "a"))
		require.EqualValues(t, 2, bought(t, c, "b")[ofLimit])
		require.Zero(t, s.Store.count.races.Load()+s.Store.count.undone.Load()+s.Store.count.refunded.Load())
	})
	t.Run("by the bytes from before", func(t *testing.T) {
		c, s := world()
		p := meanwhile(t, c, s, 1, func(other *server) { buy(t, other, 1, "b") })
		require.False(t, p.granted)
		require.Equal(t, [ofBans]int64{ofCalls: 1, ofDenied: 1}, bought(t, c, "a"), "the limit has no state, and the denial counts once")
		require.Equal(t, [ofBans]int64{ofLimit: 1, ofCalls: 1, ofGranted: 1, ofDenied: 1}, bought(t, c, "b"))
		require.EqualValues(t, 1, s.Store.count.races.Load())
		require.EqualValues(t, 3, s.Store.count.undone.Load(), "the limit, the call and the grant")
		require.Zero(t, s.Store.count.refunded.Load()+s.Store.count.kept.Load())
	})
	t.Run("by refunds", func(t *testing.T) {
		c, s := world()
		p := meanwhile(t, c, s, 9, func(other *server) {
			for range 9 {
				buy(t, other, 9, "b")
			}
			c.after(time.Millisecond, func() { buy(t, other, 9, "a") }) // the first write has come there
		})
		require.False(t, p.granted)
		require.Equal(t, [ofBans]int64{ofLimit: 1, ofCalls: 2, ofGranted: 1, ofDenied: 1}, bought(t, c, "a"), "the other call remains")
		require.EqualValues(t, 3, s.Store.count.refunded.Load())
		require.Zero(t, s.Store.count.undone.Load()+s.Store.count.kept.Load())
	})
	t.Run("a denial that is granted", func(t *testing.T) {
		c, s := world()
		buy(t, s, 1, "b")
		before := bought(t, c, "b")
		p := meanwhile(t, c, s, 1, func(other *server) {
			other.call(t, admin("b", decide.Delete)) // the limit alone
			c.after(time.Millisecond, func() {
				a, q := buyer(t, 9, "a")
				q.units = []int64{0}
				other.call(t, a)
			})
		})
		require.True(t, p.granted)
		require.Equal(t, [ofBans]int64{ofLimit: 1, ofCalls: 2, ofGranted: 2}, bought(t, c, "a"))
		before[ofGranted]++
		require.Equal(t, before, bought(t, c, "b"))
		require.EqualValues(t, 2, s.Store.count.refunded.Load(), "the call and the denial")
		require.EqualValues(t, 1, s.Store.count.kept.Load(), "the denial that counts for a ban")
	})
	t.Run("units that the call has given back", func(t *testing.T) {
		for _, touched := range []bool{false, true} {
			c, s := world()
			for range 2 {
				buy(t, s, 9, "a")
			}
			start := c.world.now
			other := serve(c.join(network{}), bounds())
			a, p := buyer(t, 1, "a", "b")
			p.units = []int64{-1, 1}
			s.Submit([]*decide.Ask{a}, false, func() {})
			c.after(2500*time.Microsecond, func() {
				buy(t, other, 1, "b")
				c.after(time.Millisecond, func() {
					if touched {
						buy(t, other, 9, "a")
					}
				})
			})
			c.runFor(time.Second)
			require.NoError(t, a.Err)
			require.False(t, p.granted, start)
			want := int64(2)
			if touched {
				want = 3
			}
			require.Equal(t, want, bought(t, c, "a")[ofLimit])
			require.Zero(t, s.Store.count.kept.Load())
		}
	})
}

// TestJointsInSeveralSlotsThatThePolicyAnswers: one of two nodes does not answer after both states were read. What was
// charged at the other is given back if the caller gets an error, and remains if it is admitted.
func TestJointsInSeveralSlotsThatThePolicyAnswers(t *testing.T) {
	for _, open := range []bool{false, true} {
		c := newCloud(1)
		s := serve(c.join(network{there: time.Millisecond, back: time.Millisecond}), bounds())
		s.policy.open = open
		a, _ := buyer(t, 9, "a", "b")
		answered := time.Duration(0)
		s.Submit([]*decide.Ask{a}, false, func() { answered = s.Elapsed() })
		c.runFor(1500 * time.Microsecond)
		c.dark[slotOf([]byte("cs:b"))] = true
		c.runFor(20 * time.Millisecond)
		require.EqualValues(t, 1, bought(t, c, "a")[ofLimit])
		first := []Write{{Key: []byte("cs:a"), New: c.look([]byte("cs:a")), Keep: time.Hour}}
		if !open {
			for bought(t, c, "a")[ofLimit] > 0 {
				require.True(t, c.step())
			}
			applied, _ := c.swapAll(first)
			require.False(t, applied, "a copy of the first write that comes late")
		}
		c.runFor(5 * time.Second)
		require.Equal(t, s.limits.timeout, answered)
		require.Equal(t, open, a.Err == nil)
		want := [ofBans]int64{}
		if open {
			want = [ofBans]int64{ofLimit: 1, ofCalls: 1, ofGranted: 1}
		}
		require.Equal(t, want, bought(t, c, "a"))
		delete(c.dark, slotOf([]byte("cs:b")))
		last, p := buyer(t, 9, "a", "b")
		s.call(t, last)
		require.NoError(t, last.Err, "the keys are free again")
		require.True(t, p.granted)
		require.EqualValues(t, 1, bought(t, c, "b")[ofLimit])
		require.Zero(t, s.Store.count.kept.Load())
	}
}

// market has callers of several servers that take units of states in several slots.
type market struct {
	*crowd
	c       *cloud
	most    int64
	granted map[string]int64 // by state
	counted map[string]int64 // calls by their first state, without those with an error
	runs    int64
	calls   int64
}

func (m *market) call(t testing.TB, s *server, until time.Duration, keys func() []string) {
	of := keys()
	a, p := buyer(t, m.most, of...)
	s.Submit([]*decide.Ask{a}, false, func() {
		m.calls++
		m.runs += int64(p.runs)
		switch {
		case a.Err != nil:
			m.errors++
		case p.granted:
			for _, key := range of {
				m.granted[key]++
			}
		default:
			m.refused++
		}
		if a.Err == nil {
			m.counted[of[0]]++
		}
		if s.Elapsed() < until {
			s.AfterFunc(s.UpTo(time.Millisecond), func() { m.call(t, s, until, keys) })
		}
	})
}

// check compares what is charged with what was granted. dead is the number of servers that have died.
func (m *market) check(t testing.TB, name string, dead int64) {
	t.Helper()
	lost := m.sum(func(n *counters) int64 { return n.unknown.Load() + n.kept.Load() }) + dead
	for _, key := range []string{"a", "b", "c"} {
		is := bought(t, m.c, key)
		require.Equal(t, is[ofLimit], is[ofGranted], "%s: %s: the parts of a state are charged together", name, key)
		require.LessOrEqual(t, m.granted[key], m.most, "%s: %s", name, key)
		require.LessOrEqual(t, is[ofLimit], m.most, "%s: %s", name, key)
		require.GreaterOrEqual(t, is[ofLimit], m.granted[key], "%s: %s", name, key)
		require.LessOrEqual(t, is[ofLimit], m.granted[key]+lost, "%s: %s", name, key)
		require.GreaterOrEqual(t, is[ofCalls], m.counted[key], "%s: %s", name, key)
		require.LessOrEqual(t, is[ofCalls], m.counted[key]+lost, "%s: %s", name, key)
	}
}

// TestJointsInSeveralSlotsChargeWhatTheyAdmit: one to four servers with six callers each race for three states in three
// slots, over networks that lose and repeat requests and replies, while a node is away for some time. No more calls are
// admitted than the limits allow, and all that was admitted, and nothing else, is charged.
func TestJointsInSeveralSlotsChargeWhatTheyAdmit(t *testing.T) {
	sum := map[string]int64{}
	for seed := range seeds(400) {
		c := newCloud(seed)
		m := &market{crowd: &crowd{}, c: c, most: 3 + int64(seed%30), granted: map[string]int64{}, counted: map[string]int64{}}
		keys := []string{"a", "b", "c"}
		for i := range 1 + seed%4 {
			n := network{there: 200 * time.Microsecond, back: 200 * time.Microsecond, jitter: 300 * time.Microsecond, timeout: 5 * time.Millisecond}
			if seed%2 == 1 {
				n.drops, n.cuts, n.silences, n.repeats, n.late = 0.01, 0.02, 0.02, 0.02, 20*time.Millisecond
			}
			s := serve(c.join(n), bounds())
			m.servers = append(m.servers, s)
			for k := range 6 {
				m.call(t, s, 40*time.Millisecond, func() []string {
					at, n := i+uint64(k), 2+c.random.IntN(2)
					all := []string{keys[at%3], keys[(at+1)%3], keys[(at+2)%3]}
					return all[:n]
				})
			}
		}
		if seed%3 == 2 {
			c.after(5*time.Millisecond, func() { c.dark[slotOf([]byte("cs:b"))] = true })
			c.after(80*time.Millisecond, func() { delete(c.dark, slotOf([]byte("cs:b"))) })
		}
		c.runFor(10 * time.Second)
		name := fmt.Sprint("seed ", seed)
		for _, s := range m.servers {
			require.Empty(t, s.queued(), name)
		}
		m.check(t, name, 0)
		if m.errors == 0 && m.sum(func(n *counters) int64 { return n.kept.Load() + n.unknown.Load() }) == 0 {
			for _, key := range keys {
				require.Equal(t, m.granted[key], bought(t, c, key)[ofLimit], "%s: %s", name, key)
			}
		}
		for what, of := range map[string]func(*counters) int64{
			"undone": func(n *counters) int64 { return n.undone.Load() }, "refunded": func(n *counters) int64 { return n.refunded.Load() },
			"kept": func(n *counters) int64 { return n.kept.Load() }, "unknown": func(n *counters) int64 { return n.unknown.Load() },
			"races": func(n *counters) int64 { return n.races.Load() },
		} {
			sum[what] += m.sum(of)
		}
		sum["calls"] += m.calls
		sum["refused"] += int64(m.refused)
		sum["errors"] += int64(m.errors)
		sum["run again"] += m.runs - m.calls
	}
	t.Log(sum)
	for _, what := range strings.Fields("undone refunded races refused errors") {
		require.Positive(t, sum[what], what)
	}
}

// TestJointsInSeveralSlotsAreChargedOnceIfTheirServerDies: one server dies after every single event of a call over three
// slots, while another server charges the same states.
func TestJointsInSeveralSlotsAreChargedOnceIfTheirServerDies(t *testing.T) {
	keys := []string{"a", "b", "c"}
	deaths := 0
	for seed := range seeds(20) {
		for point := 0; ; point++ {
			c := newCloud(seed)
			m := &market{crowd: &crowd{}, c: c, most: 4, granted: map[string]int64{}, counted: map[string]int64{}}
			for range 2 {
				n := network{there: 200 * time.Microsecond, back: 200 * time.Microsecond, jitter: 300 * time.Microsecond, timeout: 5 * time.Millisecond}
				if seed%2 == 1 {
					n.cuts, n.silences = 0.1, 0.1
				}
				m.servers = append(m.servers, serve(c.join(n), bounds()))
			}
			dying, other := m.servers[0], m.servers[1]
			m.call(t, other, 5*time.Millisecond, func() []string { return []string{keys[seed%3], keys[(seed+1)%3]} })
			m.call(t, dying, 0, func() []string { return keys })
			for range point {
				c.step()
			}
			ended := c.world.now > 15*time.Millisecond
			dying.kill()
			c.runFor(time.Second)
			m.check(t, fmt.Sprintf("seed %d, point %d", seed, point), 1)
			require.Empty(t, other.queued())
			if deaths++; ended {
				break
			}
		}
	}
	t.Log(deaths, "deaths")
}
