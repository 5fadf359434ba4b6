package decide_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/slidingwindow"
)

// heldPolicy is a policy whose calls take one unit of a window, some tokens of a bucket, and a place.
type heldPolicy struct {
	t *testing.T
	// linked says that the first key has a link to the others, and that a settlement names only that one.
	linked bool
	rounds decide.Rounds
	keys   [3]*heldKey
	base   [2]decide.Ask // of the window and of the bucket
	// history is that of the window and of the bucket. places has the ends of the places by id.
	history [2][]charged
	places  map[string]limit.Instant
}

// heldNames are the names of the keys.
var heldNames = [3][]byte{[]byte("window"), []byte("bucket"), []byte("lease")}

func newHeldPolicy(t *testing.T, linked bool) *heldPolicy {
	p := &heldPolicy{t: t, linked: linked, places: map[string]limit.Instant{}}
	for i := range p.keys {
		p.keys[i] = &heldKey{t: t}
	}
	p.base = [2]decide.Ask{windowAsk(slidingwindow.Fixed, 20, 10*time.Second, 1), bucketAsk(100, 10, time.Second, 0)}
	return p
}

// call charges tokens, as the reservation id that ends after ttl if that is not 0, and returns the ask.
func (p *heldPolicy) call(now limit.Instant, id string, tokens int64, ttl time.Duration) *decide.Ask {
	window, bucket := p.base[0].Window, p.base[1].Bucket
	bucket.Quantity = tokens
	lease := concurrency.Call{Op: concurrency.Acquire, Member: []byte(id), Limit: 5, Lease: ttl, MaxMembers: 100}
	if ttl == 0 {
		lease.Lease = time.Second
	}
	a := &decide.Ask{Family: decide.Several, Details: make([]limit.Decision, 3), Clauses: []decide.Clause{
		{Key: heldNames[0], Window: &window, Fixed: true}, {Key: heldNames[1], Bucket: &bucket}, {Key: heldNames[2], Lease: &lease},
	}}
	if ttl > 0 {
		a.ID = token(id)
		a.Reserve = reservation.Terms{TTL: ttl, Max: 1000}
		a.ID.Print = a.Fingerprint()
		if p.linked {
			a.Reserve.Linked, a.Reserve.Link, a.Reserve.Keys = true, true, heldNames[1:]
		}
	}
	for _, k := range p.keys {
		k.expire(now)
	}
	require.NoError(p.t, p.rounds.All(a, now, func(i int) *entry.Entry { return &p.keys[i].e }))
	for i, k := range p.keys {
		if p.rounds.Changes {
			require.NoError(p.t, p.rounds.Again(i, &k.e))
			k.apply(&p.rounds.Plan)
		}
	}
	return a
}

// settle settles the reservation id and returns the outcome.
func (p *heldPolicy) settle(now limit.Instant, op reservation.Op, id string, ttl time.Duration, actual ...int64) reservation.Outcome {
	a := &decide.Ask{Family: decide.SettleSeveral, ID: token(id), Settlement: reservation.Settlement{Op: op, Actual: actual[0], TTL: ttl}}
	if len(actual) > 1 {
		a.Settlement.Actuals = actual
	}
	for _, k := range p.keys {
		k.expire(now)
	}
	if p.linked {
		a.Family, a.Key = decide.Settle, heldNames[0]
		first := p.keys[0]
		require.NoError(p.t, first.plan.One(&first.e, now, a))
		if !a.Linked {
			first.apply(&first.plan)
			return a.Settled
		}
		require.Equal(p.t, decide.Keep, first.plan.Action)
	} else {
		for _, name := range heldNames {
			a.Clauses = append(a.Clauses, decide.Clause{Key: name})
		}
	}
	var s decide.Settlements
	s.Start(a)
	key := func(i int) *heldKey {
		return p.keys[slices.IndexFunc(heldNames[:], func(name []byte) bool { return bytes.Equal(name, s.Key(i)) })]
	}
	for more := true; more; more = s.More() {
		s.Begin(now)
		for i := range s.Len() {
			k := key(i)
			s.Find(&k.plan, i, &k.e)
		}
	}
	for i := range s.Len() {
		k := key(i)
		s.Look(&k.plan, &k.e)
	}
	require.Equal(p.t, len(p.keys), s.Len())
	require.NoError(p.t, s.Check())
	for i := range s.Len() {
		k := key(i)
		require.NoError(p.t, s.Settle(&k.plan, i, &k.e))
		k.apply(&k.plan)
	}
	return a.Settled
}

// compare compares both limiters with those of the other world, and the number of places in use.
func (p *heldPolicy) compare(now limit.Instant, why string) {
	for i := range p.base {
		compareWorlds(p.t, p.keys[i], otherWorld(p.t, p.history[i], now), p.base[i], now, false, why)
	}
	used := 0
	for _, until := range p.places {
		if until > now {
			used++
		}
	}
	p.keys[2].expire(now)
	if set, _ := entry.Plain(&p.keys[2].e); set.Kind != entry.None {
		require.EqualValues(p.t, used, concurrency.Describe(set.Kind.LeaseMode(), set.Value, now, func(string, int64) {}), why)
	} else {
		require.Zero(p.t, used, why)
	}
}

// change changes the history of both limiters for a reservation that was settled with actual tokens.
func (p *heldPolicy) change(now limit.Instant, id string, f func(c *charged, kept int64) int64, actual [2]int64) {
	for i := range p.history {
		for j := range p.history[i] {
			c := &p.history[i][j]
			if c.id != id {
				continue
			}
			excess := f(c, actual[i])
			if excess > 0 {
				p.history[i] = append(p.history[i], charged{at: now, ask: chargedWith(c.ask, excess)})
			}
			break
		}
	}
}

// TestReservationsOfSeveralLimits makes random calls and reservations of a policy with three kinds of limits.
func TestReservationsOfSeveralLimits(t *testing.T) {
	for seed := range effort.Steps(60, 2000) {
		r := rand.New(rand.NewPCG(uint64(seed), 33))
		p := newHeldPolicy(t, seed%2 == 1)
		now, made := limit.Instant(0).Add(time.Hour), 0
		for step := range 60 {
			now = now.Add(time.Duration(r.Int64N(int64(time.Second))))
			why := fmt.Sprintf("seed %d, step %d", seed, step)
			if r.IntN(2) == 0 || made == 0 {
				made++
				p.begin(now, fmt.Sprint("r", made), 1+r.Int64N(40), time.Duration(r.IntN(3))*3*time.Second, why)
			} else {
				p.end(r, now, fmt.Sprint("r", made-r.IntN(min(made, 6))), why)
			}
			p.compare(now, why)
		}
	}
}

// begin makes a call, or a reservation, and notes what it was granted. Sent again, it charges nothing.
func (p *heldPolicy) begin(now limit.Instant, id string, tokens int64, ttl time.Duration, why string) {
	a := p.call(now, id, tokens, ttl)
	if a.Refused {
		return
	}
	c := charged{at: now, until: now.Add(ttl), live: true}
	if c.id = id; ttl == 0 {
		c.id = ""
	}
	for i, units := range []int64{1, tokens} {
		c.ask, c.units = chargedWith(p.base[i], units), units
		p.history[i] = append(p.history[i], c)
	}
	if p.places[id] = c.until; ttl == 0 {
		p.places[id] = now.Add(time.Second)
		return
	}
	again := p.call(now, id, tokens, ttl)
	require.True(p.t, again.Repeats(), why)
	require.False(p.t, again.Refused, why)
}

// end settles the reservation id in one of the ways, twice, and checks the outcomes.
func (p *heldPolicy) end(r *rand.Rand, now limit.Instant, id, why string) {
	var live, lapsed bool
	for _, c := range p.history[1] {
		if c.id == id && c.live {
			live, lapsed = c.until > now, c.until <= now
		}
	}
	op, ttl, tokens := reservation.Op(1+r.IntN(3)), 5*time.Second, r.Int64N(60)
	numbers := []int64{tokens}
	if r.IntN(2) == 0 {
		numbers = []int64{77, tokens} // that of a limit that counts calls has no effect
	}
	got := p.settle(now, op, id, ttl, numbers...)
	switch {
	case live && op == reservation.Renew:
		require.Equal(p.t, reservation.Done, got, why)
		p.change(now, id, func(c *charged, _ int64) int64 { c.until = now.Add(ttl); return 0 }, [2]int64{})
		p.places[id] = now.Add(ttl)
		return
	case live:
		require.Equal(p.t, reservation.Done, got, why)
		delete(p.places, id)
		actual := [2]int64{1, tokens}
		if op == reservation.Cancel {
			actual = [2]int64{}
		}
		p.change(now, id, func(c *charged, actual int64) int64 {
			excess := actual - min(actual, c.units)
			c.units, c.live = min(actual, c.units), false
			return excess
		}, actual)
	case lapsed && op == reservation.Commit:
		require.Equal(p.t, reservation.Late, got, why)
		p.change(now, id, func(c *charged, actual int64) int64 { c.units, c.live = 0, false; return actual }, [2]int64{1, tokens})
	case lapsed && op == reservation.Cancel:
		require.Equal(p.t, reservation.Before, got, why)
		p.change(now, id, func(c *charged, _ int64) int64 { c.units, c.live = 0, false; return 0 }, [2]int64{})
	default:
		return
	}
	require.Equal(p.t, reservation.Before, p.settle(now, reservation.Commit, id, ttl, 9), why)
	require.Equal(p.t, reservation.Before, p.settle(now, reservation.Cancel, id, ttl, 0), why)
}
