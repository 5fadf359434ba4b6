package decide_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// memory is the time for which ended reservations are remembered.
const memory = 60 * time.Second

// heldKey is one key with its limiter, and a copy that only gets its effects.
type heldKey struct {
	t         *testing.T
	plan      decide.Plan
	rounds    decide.Rounds
	e, copied entry.Entry
	deltas    [][]byte // the effects since the value was last recorded as a whole, to be applied once more
}

// ask decides a at now, and makes the change.
func (k *heldKey) ask(now limit.Instant, a *decide.Ask) error {
	k.expire(now)
	before := slices.Clone(k.e.Value)
	err := k.plan.One(&k.e, now, a)
	require.Equal(k.t, before, k.e.Value, "deciding changes nothing")
	if err == nil {
		k.apply(&k.plan)
	}
	return err
}

// expire removes the key if it has expired at now.
func (k *heldKey) expire(now limit.Instant) {
	if k.e.Kind != entry.None && k.e.Expiry <= now {
		k.e, k.copied = entry.Entry{}, entry.Entry{}
	}
}

// clause decides a as the only clause of an RL.MULTI, makes the change, and fills in the answer of a.
func (k *heldKey) clause(now limit.Instant, a *decide.Ask) {
	c := decide.Clause{Force: a.Window.Charge == slidingwindow.Force || a.Bucket.Charge == tokenbucket.Force}
	if a.Family == decide.Window {
		c.Window = &a.Window
	} else {
		c.Bucket = &a.Bucket
	}
	partial := a.Window.Charge == slidingwindow.Partial || a.Bucket.Charge == tokenbucket.Partial
	if partial {
		a.Window.Charge, a.Bucket.Charge = slidingwindow.Whole, tokenbucket.Whole
	}
	k.expire(now)
	all := decide.Ask{Family: decide.Several, Clauses: []decide.Clause{c}, Details: make([]limit.Decision, 1), Partial: partial}
	require.NoError(k.t, k.rounds.All(&all, now, func(int) *entry.Entry { return &k.e }))
	if k.rounds.Changes {
		require.NoError(k.t, k.rounds.Again(0, &k.e))
		k.apply(&k.rounds.Plan)
	}
	a.Decision = all.Details[0]
	a.Decision.Refused = all.Binding().Refused
	if partial {
		a.Window.Charge, a.Bucket.Charge = slidingwindow.Partial, tokenbucket.Partial
	}
}

func (k *heldKey) apply(p *decide.Plan) {
	switch p.Action {
	case decide.Remove:
		k.e, k.copied = entry.Entry{}, entry.Entry{}
	case decide.Store:
		delta, ok := p.AppendDelta(nil, k.e.Value)
		ok = ok && k.e.Kind == p.Kind && effect.Patchable(p.Kind)
		k.e = entry.Entry{Kind: p.Kind, Expiry: p.Expiry, Value: slices.Clone(p.Apply(k.e.Value, nil))}
		require.NoError(k.t, effect.CheckEntry(k.e))
		if !ok {
			k.copied = k.e
			k.copied.Value = slices.Clone(k.e.Value)
			k.deltas = nil
			break
		}
		k.deltas = append(k.deltas, delta)
		require.NoError(k.t, effect.Check(effect.Effect{Patch: true, Entry: entry.Entry{Kind: p.Kind, Value: delta}}))
		value, err := effect.ApplyDelta(p.Kind, k.copied.Value, delta)
		require.NoError(k.t, err)
		k.copied = entry.Entry{Kind: p.Kind, Expiry: p.Expiry, Value: value}
	}
	require.Equal(k.t, k.e.Kind, k.copied.Kind)
	if !k.e.Kind.Remembers() {
		require.Equal(k.t, k.e, k.copied)
		return
	}
	require.True(k.t, string(k.e.Value) == string(k.copied.Value) || k.same(), "the effects give the same value")
}

// same reports whether the copy says the same as the entry, although its ring has another layout.
func (k *heldKey) same() bool {
	tell := func(e *entry.Entry) (fields []string) {
		_ = decide.Tell(e, 0, nil, func(field, text string, n int64, _ bool) {
			if field != "capacity" {
				fields = append(fields, fmt.Sprint(field, text, n))
			}
		})
		return fields
	}
	return slices.Equal(tell(&k.e), tell(&k.copied))
}

// again applies all deltas once more to the newest value: nothing changes.
func (k *heldKey) again() {
	value, err := slices.Clone(k.copied.Value), error(nil)
	for _, d := range k.deltas {
		value, err = effect.ApplyDelta(k.copied.Kind, value, d)
		require.NoError(k.t, err)
		require.NoError(k.t, effect.CheckEntry(entry.Entry{Kind: k.copied.Kind, Value: value}))
	}
	k.copied.Value = value
	require.True(k.t, string(k.e.Value) == string(value) || k.same())
}

func bucketAsk(capacity, count int64, period time.Duration, quantity int64) decide.Ask {
	return decide.Ask{Family: decide.Bucket, Bucket: tokenbucket.Call{
		Mode: tokenbucket.Greedy, Capacity: capacity, Init: capacity, Count: count, Period: period,
		Interval: period / time.Duration(count), Quantity: quantity,
	}}
}

func windowAsk(mode slidingwindow.Mode, most int64, window time.Duration, quantity int64) decide.Ask {
	c := slidingwindow.Call{Limit: most, Window: window, Quantity: quantity, Mode: mode}
	if mode == slidingwindow.Buckets {
		c.Slots = 6
	}
	if mode == slidingwindow.Calendar {
		c.Window, c.Calendar = 0, calendar.Rule{Unit: calendar.Day, From: 30}
	}
	return decide.Ask{Family: decide.Window, Window: c}
}

func reserve(a decide.Ask, id string, ttl time.Duration) decide.Ask {
	a.ID = token(id)
	a.Reserve = reservation.Terms{TTL: ttl, Max: 1000}
	a.ID.Print = a.Fingerprint()
	return a
}

func token(id string) idempotency.Call {
	return idempotency.Call{Token: []byte(id), TTL: memory, Max: 10000, Seed: 7}
}

func settle(op reservation.Op, id string, actual int64) decide.Ask {
	return decide.Ask{Family: decide.Settle, ID: token(id), Settlement: reservation.Settlement{Op: op, Actual: actual}}
}

// charged is a call of the real world that has changed its limiter, for the replay in another world.
type charged struct {
	at  limit.Instant
	ask decide.Ask
	id  string // of a reservation
	// units is what a reservation holds or has kept, and until is the instant at which it lapses.
	units int64
	until limit.Instant
	live  bool
}

// quantityOf returns the quantity of a.
func quantityOf(a *decide.Ask) *int64 {
	if a.Family == decide.Window {
		return &a.Window.Quantity
	}
	return &a.Bucket.Quantity
}

// chargedWith returns a as a call that charges units, whatever the limit is.
func chargedWith(a decide.Ask, units int64) decide.Ask {
	a.ID, a.Reserve = idempotency.Call{}, reservation.Terms{}
	*quantityOf(&a) = units
	a.Window.Charge, a.Bucket.Charge = slidingwindow.Force, tokenbucket.Force
	return a
}

// otherWorld returns a key in which every reservation has charged at its beginning what it has kept at now.
func otherWorld(t *testing.T, history []charged, now limit.Instant) *heldKey {
	k := &heldKey{t: t}
	for _, c := range history {
		a := c.ask
		if c.id != "" {
			units := c.units
			if c.live && c.until <= now {
				units = 0
			}
			if a = chargedWith(a, units); units == 0 {
				a.Bucket.Quantity, a.Bucket.Charge, a.Bucket.Denied = 1, tokenbucket.Whole, true
				if a.Family == decide.Window {
					continue
				}
			}
		}
		require.NoError(t, k.ask(c.at, &a))
	}
	return k
}

// limits are those of the random runs.
var limits = map[string]decide.Ask{
	"greedy":   bucketAsk(100, 10, time.Second, 0),
	"short":    func() decide.Ask { a := bucketAsk(100, 10, time.Second, 0); a.Bucket.Init = 20; return a }(),
	"fixed":    windowAsk(slidingwindow.Fixed, 100, 10*time.Second, 0),
	"counter":  windowAsk(slidingwindow.Counter, 100, 10*time.Second, 0),
	"buckets":  windowAsk(slidingwindow.Buckets, 100, 10*time.Second, 0),
	"calendar": windowAsk(slidingwindow.Calendar, 100, 0, 0),
	"log":      windowAsk(slidingwindow.Log, 100, 10*time.Second, 0),
}

// TestReservationsAreAsIfTheyHadAskedForWhatTheyKept makes random calls, reservations and settlements,
// and compares the limiter after each of them with one that was charged, at the beginning of each
// reservation, what it has kept in the end.
func TestReservationsAreAsIfTheyHadAskedForWhatTheyKept(t *testing.T) {
	for name, base := range limits {
		t.Run(name, func(t *testing.T) {
			for seed := range effort.Steps(40, 1000) {
				randomRun(t, uint64(seed), base, false)
			}
		})
	}
}

// TestRefundsBesideReservationsAreNeverFreer is the same with calls of negative quantities. A bucket is equal
// to the other one, and a window has never more room.
func TestRefundsBesideReservationsAreNeverFreer(t *testing.T) {
	for name, base := range limits {
		t.Run(name, func(t *testing.T) {
			for seed := range effort.Steps(20, 300) {
				randomRun(t, uint64(seed), base, true)
			}
		})
	}
}

func randomRun(t *testing.T, seed uint64, base decide.Ask, refunds bool) {
	r := rand.New(rand.NewPCG(seed, 29))
	k := &heldKey{t: t}
	var history []charged
	now, made := limit.Instant(0).Add(time.Hour), 0
	for step := range 60 {
		now = now.Add(time.Duration(r.Int64N(int64(time.Second))))
		if r.IntN(30) == 0 {
			now = now.Add(time.Duration(r.Int64N(int64(20 * time.Second))))
		}
		why := fmt.Sprintf("seed %d, step %d", seed, step)
		a := base
		quantity := quantityOf(&a)
		*quantity = 1 + r.Int64N(40)
		switch r.IntN(6) {
		case 0:
			a.Window.Charge, a.Bucket.Charge = slidingwindow.Force, tokenbucket.Force
		case 1:
			a.Window.Charge, a.Bucket.Charge = slidingwindow.Partial, tokenbucket.Partial
		case 2:
			if a.Family == decide.Bucket {
				a.Bucket.MaxWait, a.Bucket.Waits = time.Second, true
			}
		}
		switch kind := r.IntN(10); {
		case kind < 3: // a call
			if refunds && r.IntN(3) == 0 {
				a.Window.Charge, a.Bucket.Charge, a.Bucket.Waits, a.Bucket.MaxWait = slidingwindow.Whole, tokenbucket.Whole, false, 0
				*quantity = -1 - r.Int64N(60)
			}
			if r.IntN(2) == 0 {
				k.clause(now, &a)
			} else {
				require.NoError(t, k.ask(now, &a), why)
			}
			history = append(history, charged{at: now, ask: outcome(a)})
		case kind < 7: // a reservation
			made++
			id := fmt.Sprint("r", made)
			ttl := time.Second + time.Duration(r.Int64N(int64(15*time.Second)))
			reserving := reserve(a, id, ttl)
			require.NoError(t, k.ask(now, &reserving), why)
			c := charged{at: now, ask: outcome(reserving)}
			if units := *quantityOf(&c.ask); !c.ask.Bucket.Denied && units > 0 {
				c.id, c.units, c.until, c.live = id, units, now.Add(ttl), true
			}
			history = append(history, c)
		default:
			if made == 0 {
				continue
			}
			id := fmt.Sprint("r", made-r.IntN(min(made, 8)))
			history = settled(t, k, r, now, id, history, why)
		}
		if r.IntN(10) == 0 {
			k.again()
		}
		compareWorlds(t, k, otherWorld(t, history, now), base, now, refunds, why)
	}
}

// outcome returns a, which was decided, as a call that charges what a was granted.
func outcome(a decide.Ask) decide.Ask {
	quantity := *quantityOf(&a)
	refused := a.Decision.Refused
	partial := a.Window.Charge == slidingwindow.Partial || a.Bucket.Charge == tokenbucket.Partial
	switch {
	case quantity <= 0:
		a.ID, a.Reserve = idempotency.Call{}, reservation.Terms{}
		return a
	case refused > 0 && (!partial || refused == quantity):
		quantity = 0
	default:
		quantity -= refused
	}
	b := chargedWith(a, quantity)
	if quantity == 0 && b.Family == decide.Bucket {
		b.Bucket.Quantity, b.Bucket.Charge, b.Bucket.Denied = 1, tokenbucket.Whole, true
	}
	return b
}

// settled settles the reservation id in one of the ways, checks the answer, and returns the changed history.
func settled(t *testing.T, k *heldKey, r *rand.Rand, now limit.Instant, id string, history []charged, why string) []charged {
	i := slices.IndexFunc(history, func(c charged) bool { return c.id == id })
	op := reservation.Op(1 + r.IntN(3))
	actual := r.Int64N(60)
	a := settle(op, id, actual)
	a.Settlement.TTL = time.Duration(1+r.IntN(10)) * time.Second
	require.NoError(t, k.ask(now, &a), why)
	if i < 0 { // it was denied
		return history
	}
	c := &history[i]
	if c.live && c.until > now {
		require.Equal(t, reservation.Done, a.Settled, why)
		switch {
		case op == reservation.Renew:
			c.until = now.Add(a.Settlement.TTL)
			return history
		case op == reservation.Cancel:
			actual = 0
		}
		excess := actual - min(actual, c.units)
		c.units, c.live = min(actual, c.units), false
		if excess > 0 {
			history = append(history, charged{at: now, ask: chargedWith(c.ask, excess)})
		}
		return history
	}
	late := c.live && c.until.Add(memory) > now
	switch {
	case op == reservation.Commit && late:
		require.Equal(t, reservation.Late, a.Settled, why)
		c.units, c.live = 0, false
		if actual > 0 {
			history = append(history, charged{at: now, ask: chargedWith(c.ask, actual)})
		}
	case op == reservation.Cancel && late:
		require.Equal(t, reservation.Before, a.Settled, why)
		c.units, c.live = 0, false
	case op == reservation.Renew:
		require.Equal(t, reservation.Before, a.Settled, why)
	}
	return history
}

// compareWorlds compares what the limiters of two keys answer.
func compareWorlds(t *testing.T, k, other *heldKey, base decide.Ask, now limit.Instant, refunds bool, why string) {
	for _, quantity := range []int64{0, 1, 7, 60, 100} {
		a := base
		*quantityOf(&a) = quantity
		a.Window.Charge, a.Bucket.Charge = slidingwindow.Peek, tokenbucket.Peek
		b := a
		require.NoError(t, k.ask(now, &a))
		require.NoError(t, other.ask(now, &b))
		if refunds && base.Family == decide.Window {
			require.LessOrEqual(t, a.Decision.Remaining, b.Decision.Remaining, why)
			continue
		}
		require.Equal(t, b.Decision, a.Decision, "%s, quantity %d", why, quantity)
	}
}

// FuzzHeldValue decides calls on any value that is accepted as a limiter with reservations, and applies any
// delta to it. The value stays valid.
func FuzzHeldValue(f *testing.F) {
	for name, base := range limits {
		k := &heldKey{t: &testing.T{}}
		*quantityOf(&base) = 5
		for i := range 3 {
			a := reserve(base, fmt.Sprint(name, i), time.Minute)
			if err := k.ask(0, &a); err != nil {
				f.Fatal(err)
			}
		}
		delta := []byte{}
		if len(k.deltas) > 0 {
			delta = k.deltas[0]
		}
		f.Add(byte(k.e.Kind), k.e.Value, delta, int64(time.Second))
	}
	f.Fuzz(func(t *testing.T, kind byte, value, delta []byte, at int64) {
		e := entry.Entry{Kind: entry.Kind(kind), Expiry: entry.NoExpiry, Value: value}
		if !e.Kind.Remembers() || !reservation.Marked(value) || effect.CheckEntry(e) != nil {
			return
		}
		now := limit.Instant(at)
		_ = decide.Tell(&e, now, nil, func(string, string, int64, bool) {})
		if changed, err := effect.ApplyDelta(e.Kind, slices.Clone(value), delta); err == nil {
			e.Value = changed
			require.NoError(t, effect.CheckEntry(e))
		}
		for _, base := range limits {
			for _, quantity := range []int64{3, -7} {
				k := heldKey{e: e}
				k.e.Value = slices.Clone(e.Value)
				a := base
				*quantityOf(&a) = quantity
				for _, b := range []decide.Ask{a, reserve(windowAsk(slidingwindow.Log, 9, time.Minute, 1), "x", time.Minute), settle(reservation.Commit, "greedy0", 9)} {
					if k.plan.One(&k.e, now, &b) == nil && k.plan.Action == decide.Store {
						_, _ = k.plan.AppendDelta(nil, k.e.Value)
						k.e = entry.Entry{Kind: k.plan.Kind, Expiry: k.plan.Expiry, Value: k.plan.Apply(k.e.Value, nil)}
						require.NoError(t, effect.CheckEntry(k.e), "%v %v %v -> %v: %v", b.Family, e.Kind, quantity, k.e.Kind, b.Settled)
					}
				}
			}
		}
	})
}

// TestAnUnusedLimiterWithReservationsIsAsIfAbsent lets a bucket refill while tokens of it are reserved. The key
// is then free for a limiter of another family, and nothing comes back.
func TestAnUnusedLimiterWithReservationsIsAsIfAbsent(t *testing.T) {
	k := &heldKey{t: t}
	bucket := reserve(bucketAsk(10, 10, time.Second, 10), "bucket", time.Minute)
	require.NoError(t, k.ask(0, &bucket))
	early := windowAsk(slidingwindow.Fixed, 10, time.Minute, 4)
	require.ErrorIs(t, k.ask(1, &early), limit.ErrWrongType)
	now := limit.Instant(time.Second)
	for _, other := range []decide.Ask{
		early,
		{Family: decide.Cell, Quantity: 1, Quota: tenths(t)},
		{Family: decide.Counter},
		{Family: decide.Lease, Lease: concurrency.Call{Limit: 1, Lease: time.Second, Member: []byte("m")}},
	} {
		require.ErrorIs(t, k.ask(now, &other), limit.ErrWrongType)
	}
	short := bucketAsk(10, 10, time.Second, 3)
	short.Bucket.Init = 3
	require.NoError(t, k.ask(now, &short))
	require.Zero(t, short.Decision.Refused)
	require.Zero(t, short.Decision.Remaining, "a new bucket begins with three tokens")
	a := settle(reservation.Cancel, "bucket", 0)
	require.NoError(t, k.ask(now, &a))
	require.Equal(t, reservation.Done, a.Settled)
	look := bucketAsk(10, 10, time.Second, 0)
	require.NoError(t, k.ask(now, &look))
	require.Zero(t, look.Decision.Remaining, "what had come back by itself does not come back again")
}

// TestNothingIsLeftOfForgottenReservations checks that a busy key becomes what it was before its first
// reservation.
func TestNothingIsLeftOfForgottenReservations(t *testing.T) {
	k := &heldKey{t: t}
	for i := range 3 {
		a := reserve(bucketAsk(1000, 1, time.Second, 9), fmt.Sprint(i), time.Minute)
		require.NoError(t, k.ask(limit.Instant(i), &a))
		c := settle(reservation.Commit, fmt.Sprint(i), 9)
		require.NoError(t, k.ask(limit.Instant(i), &c))
	}
	a := bucketAsk(1000, 1, time.Second, 1)
	require.NoError(t, k.ask(limit.Instant(memory)+10, &a))
	require.Equal(t, entry.OfBucket(tokenbucket.Greedy), k.e.Kind)
	require.Len(t, k.e.Value, 16)
	require.EqualValues(t, 999, a.Decision.Remaining)
}

// TestTheLastSettlementIsForgottenLast settles one of more reservations that lapse at once than the key
// remembers.
func TestTheLastSettlementIsForgottenLast(t *testing.T) {
	k := &heldKey{t: t}
	few := func(a decide.Ask) decide.Ask { a.ID.Max = 3; return a }
	for i := range 6 {
		a := few(reserve(bucketAsk(1000, 1, time.Second, 9), fmt.Sprint(i), time.Second))
		require.NoError(t, k.ask(0, &a))
	}
	for _, want := range []reservation.Outcome{reservation.Late, reservation.Before} {
		c := few(settle(reservation.Commit, "0", 50))
		require.NoError(t, k.ask(limit.Instant(time.Second), &c))
		require.Equal(t, want, c.Settled)
		if want == reservation.Late {
			require.EqualValues(t, 3, c.Forgotten)
		}
	}
}

func tenths(t *testing.T) gcra.Quota {
	q, err := gcra.NewQuota(9, 10, 60)
	require.NoError(t, err)
	return q
}
