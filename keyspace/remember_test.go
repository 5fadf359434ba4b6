package keyspace_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// identified makes random asks about one key of each kind.
type identified struct{ *rand.Rand }

func (r identified) quantity() int64 { return int64(r.IntN(8)) - 1 }

// clause returns a random clause of the limiter at key.
func (r identified) clause(key string, n int64) decide.Clause {
	c := decide.Clause{Key: []byte(key)}
	bucket := func(m tokenbucket.Mode) {
		c.Bucket = &tokenbucket.Call{
			Mode: m, Capacity: 20, Init: 20, Count: 10, Period: 10 * time.Second, Interval: time.Second, Quantity: n,
			Warmup: 5 * time.Second, Cold: 3, MaxWait: time.Duration(r.IntN(3)) * time.Second, Waits: true,
		}
	}
	window := func(m slidingwindow.Mode) {
		c.Window = &slidingwindow.Call{Mode: m, Limit: 20, Window: 10 * time.Second, Quantity: n, Slots: 9, LogMaxEntries: 100}
	}
	switch key {
	case "greedy", "greedy 2":
		bucket(tokenbucket.Greedy)
	case "debt":
		bucket(tokenbucket.Debt)
	case "interval":
		bucket(tokenbucket.Interval)
	case "leaky":
		bucket(tokenbucket.Leaky)
	case "warmup":
		bucket(tokenbucket.Warmup)
	case "counter":
		window(slidingwindow.Counter)
	case "fixed":
		window(slidingwindow.Fixed)
	case "log":
		window(slidingwindow.Log)
	case "buckets":
		window(slidingwindow.Buckets)
	case "cell":
		q, _ := gcra.NewQuota(19, 10, 10)
		c.Quota, c.Quantity = &q, n
	default:
		c.Lease = &concurrency.Call{
			Op: concurrency.Acquire, Limit: 5, Lease: 5 * time.Second, Member: fmt.Append(nil, "m", r.IntN(8)), MaxMembers: 100,
		}
	}
	return c
}

var identifiedKeys = []string{
	"greedy", "greedy 2", "debt", "interval", "leaky", "warmup", "counter", "fixed", "log", "buckets", "cell", "lease",
}

// ask returns a random ask about one limiter, or about several.
func (r identified) ask() decide.Ask {
	n := r.quantity()
	if r.IntN(2) == 0 {
		c := r.clause(identifiedKeys[r.IntN(10)], n)
		a := decide.Ask{Key: c.Key, Family: decide.Window}
		if c.Window != nil {
			a.Window = *c.Window
			a.Window.Charge = slidingwindow.Charge(r.IntN(4))
			return a
		}
		a.Family, a.Bucket = decide.Bucket, *c.Bucket
		switch r.IntN(4) {
		case 0:
			a.Bucket.Charge, a.Bucket.MaxWait, a.Bucket.Waits = tokenbucket.Force, 0, false
		case 1:
			if m := a.Bucket.Mode; m != tokenbucket.Debt && m != tokenbucket.Warmup {
				a.Bucket.Charge, a.Bucket.MaxWait, a.Bucket.Waits = tokenbucket.Partial, 0, false
			}
		}
		return a
	}
	a := decide.Ask{Family: decide.Several, Partial: r.IntN(3) == 0}
	for _, i := range r.Perm(len(identifiedKeys))[:1+r.IntN(3)] {
		c := r.clause(identifiedKeys[i], n)
		if a.Partial && c.Bucket != nil && (c.Bucket.Mode == tokenbucket.Debt || c.Bucket.Mode == tokenbucket.Warmup) {
			continue
		}
		if a.Partial && c.Bucket != nil { // PARTIAL and WAIT exclude each other
			c.Bucket.MaxWait, c.Bucket.Waits = 0, false
		}
		a.Clauses = append(a.Clauses, c)
	}
	if len(a.Clauses) == 0 {
		a.Clauses = append(a.Clauses, r.clause("fixed", n))
	}
	a.Details = make([]limit.Decision, len(a.Clauses))
	return a
}

// copied returns a copy of a that shares no memory with a.
func copied(a *decide.Ask) *decide.Ask {
	b := *a
	b.Own(nil)
	return &b
}

func keysOf(a *decide.Ask) (keys []string) {
	if a.Family != decide.Several {
		return []string{string(a.Key)}
	}
	for _, c := range a.Clauses {
		keys = append(keys, string(c.Key))
	}
	return keys
}

// called is a call that a key of the model remembers.
type called struct {
	token   string
	print   uint32
	missing int64
	until   limit.Instant
}

// TestRepetitionsChargeNothing sends calls with tokens to one keyspace, many of them repeatedly, and
// the charged ones once and without a token to another. Both have the same limiters at every step.
// So do a replica of the first, and a keyspace into which its effects are loaded.
func TestRepetitionsChargeNothing(t *testing.T) {
	repetitions := 0
	for seed := range effort.Steps(10, 1000) {
		repetitions += repeatedRun(t, uint64(seed), 1000)
	}
	t.Log(repetitions, "repetitions")
	require.Positive(t, repetitions)
}

func repeatedRun(t *testing.T, seed uint64, steps int) (repetitions int) {
	r := identified{rand.New(rand.NewPCG(seed, 29))}
	with, v, j, clock := journalled(t)
	without, w, clock2 := open(t, keyspace.Options{Databases: 2})
	replica := newReplica(t, clock.Now())
	most := uint32(1 + r.IntN(60))
	model := map[string][]called{}
	var sent []decide.Ask
	for step := range steps {
		by := time.Duration(r.IntN(400)) * time.Millisecond
		if r.IntN(100) == 0 {
			by = time.Duration(r.IntN(90)) * time.Second
		}
		clock.Advance(by)
		clock2.Advance(by)
		replica.clock.Advance(by)
		v.Refresh()
		w.Refresh()
		now := v.Now()
		require.Equal(t, now, w.Now())
		left := all(without)
		for key := range model {
			if e := left["0"+key]; e.Kind == entry.None || e.Expiry <= now {
				delete(model, key)
			}
		}
		a := r.ask()
		a.ID = idempotency.Call{Token: fmt.Append(nil, "t", r.IntN(100)), TTL: 20 * time.Second, Max: most, Seed: seed}
		if r.IntN(3) > 0 && len(sent) > 0 {
			a = sent[len(sent)-1-r.IntN(min(10, len(sent)))]
		}
		a = *copied(&a)
		a.ID.Print = a.Fingerprint()
		sent = append(sent, *copied(&a))
		if r.IntN(6) == 0 {
			a.ID.Token = nil
		}
		if a.OnlyLooks() {
			a.ID.Token = nil
		}
		var known *called // the first key's, unless another key remembers a call with other arguments
		if a.ID.Token != nil {
			for _, key := range keysOf(&a) {
				for i := range model[key] {
					c := &model[key][i]
					if c.token == string(a.ID.Token) && c.until > now && (known == nil || c.print != a.ID.Print) {
						known = c
					}
				}
			}
		}
		b := copied(&a)
		b.ID.Token = nil
		v.Decide(&a)
		switch {
		case known != nil && known.print != a.ID.Print:
			require.ErrorIs(t, a.Err, decide.ErrReused, "seed %d, step %d", seed, step)
		case known != nil:
			require.NoError(t, a.Err)
			require.True(t, a.Repeats())
			require.Equal(t, known.missing, a.Whole().Refused)
			repetitions++
		default:
			w.Decide(b)
			require.Equal(t, b.Err, a.Err, "seed %d, step %d", seed, step)
			if a.Err != nil {
				break
			}
			require.False(t, a.Repeats(), "seed %d, step %d", seed, step)
			require.Equal(t, b.Whole(), a.Whole(), "seed %d, step %d", seed, step)
			require.Equal(t, b.Details, a.Details)
			remember(&a, model, all(without), now)
		}
		same(t, all(without), all(with), now)
		if step%16 == 0 {
			replica.follow(t, j)
			require.Equal(t, living(all(with), now), living(all(replica.ks), now), "seed %d, step %d", seed, step)
		}
	}
	loaded := keyspace.New(keyspace.Options{Clock: clock, Shards: 4, Databases: 2})
	defer loaded.Close()
	j.replay(t, loaded, 0)
	require.Equal(t, living(all(with), clock.Now()), living(all(loaded), clock.Now()))
	return repetitions
}

// remember adds the call a to the model, unless it was denied. left has the keys after the call.
func remember(a *decide.Ask, model map[string][]called, left entries, now limit.Instant) {
	d := a.Whole()
	missing, granted := int64(0), d.Refused == 0
	switch {
	case a.Family == decide.Several && a.Partial:
		missing, granted = a.Missing, !a.Refused
	case a.Family == decide.Window && a.Window.Charge == slidingwindow.Partial && a.Window.Quantity > 0:
		missing, granted = d.Refused, d.Refused < a.Window.Quantity
	case a.Family == decide.Bucket && a.Bucket.Charge == tokenbucket.Partial && a.Bucket.Quantity > 0:
		missing, granted = d.Refused, d.Refused < a.Bucket.Quantity
	}
	for i, key := range keysOf(a) {
		if left["0"+key].Kind == entry.None {
			delete(model, key)
			continue
		}
		charges := a.Family != decide.Several || a.Clauses[i].Lease != nil || quantityOf(&a.Clauses[i]) != 0
		if a.ID.Token == nil || !granted || !charges {
			continue
		}
		known := slices.DeleteFunc(model[key], func(c called) bool { return c.until <= now })
		known = known[max(0, len(known)+1-int(a.ID.Max)):]
		model[key] = append(known, called{string(a.ID.Token), a.ID.Print, missing, now.Add(a.ID.TTL)})
	}
}

// quantityOf returns the quantity of a clause that is not a lease.
func quantityOf(c *decide.Clause) int64 {
	switch {
	case c.Window != nil:
		return c.Window.Quantity
	case c.Bucket != nil:
		return c.Bucket.Quantity
	}
	return c.Quantity
}

// living returns the entries of m that have not expired at now.
func living(m entries, now limit.Instant) entries {
	left := entries{}
	for key, e := range m {
		if e.Expiry > now {
			left[key] = e
		}
	}
	return left
}

// same requires that the limiters of with are those of without at now, apart from the calls that
// they remember.
func same(t *testing.T, without, with entries, now limit.Instant) {
	plain := func(m entries) entries {
		m = living(m, now)
		for key, e := range m {
			p, _ := entry.Plain(&e)
			if p.Kind == entry.Cell {
				p.Value = gcra.AppendState(nil, entry.CellTAT(&p))
			}
			if p.Kind == entry.OfWindow(slidingwindow.Log) { // unused places of the ring may differ
				var fields []byte
				slidingwindow.Describe(slidingwindow.Log, p.Value, now, func(field string, n int64) { fields = fmt.Append(fields, field, n) })
				p.Value = fields
			}
			m[key] = p
		}
		return m
	}
	require.Equal(t, plain(without), plain(with))
}

// bytesPerCall returns the memory that a remembered call of a key takes, if each of many keys has
// calls of them.
func bytesPerCall(t testing.TB, calls int) float64 {
	const keys = 50_000
	memory := func(identified bool) int64 {
		ks, v, _ := open(t, keyspace.Options{})
		defer ks.Close()
		a := decide.Ask{Family: decide.Bucket, Bucket: tokenbucket.Call{
			Mode: tokenbucket.Greedy, Capacity: 1e6, Init: 1e6, Count: 1, Period: time.Second, Interval: time.Second, Quantity: 1,
		}}
		for n := range calls {
			for i := range keys {
				a.Key = fmt.Appendf(nil, "user:%011d", i)
				if identified {
					a.ID = idempotency.Call{
						Token: fmt.Appendf(nil, "0192f5c2-7d6e-7b3a-9c51-%012d", n), TTL: time.Minute, Max: 10_000, Seed: uint64(i),
					}
				}
				v.Decide(&a)
				require.NoError(t, a.Err)
			}
		}
		return ks.Stats().Memory
	}
	return float64(memory(true)-memory(false)) / keys / float64(calls)
}

func TestMemoryOfRememberedCalls(t *testing.T) {
	effort.Alone(t)
	for calls, most := range map[int]float64{1: 64, 4: 40, 20: 50} {
		got := bytesPerCall(t, calls)
		t.Logf("%d calls at each key: %.1f bytes a call", calls, got)
		require.LessOrEqual(t, got, most, "%d calls", calls)
	}
}

// TestRememberedCallsStayWithinMaxMemory sends calls with ever new tokens to few keys, with room for
// far fewer than the keys may remember. Calls without a token are decided as before.
func TestRememberedCallsStayWithinMaxMemory(t *testing.T) {
	effort.Alone(t)
	const most = 16 << 20
	calls := effort.Steps(1_000_000, 10_000_000)
	ks, v, _ := open(t, keyspace.Options{MaxMemory: most})
	a := decide.Ask{Family: decide.Bucket, Bucket: tokenbucket.Call{
		Mode: tokenbucket.Greedy, Capacity: 1e9, Init: 1e9, Count: 1, Period: time.Second, Interval: time.Second, Quantity: 1,
	}}
	refused, charged := 0, 0
	for i := range calls {
		a.Key = fmt.Appendf(nil, "key:%d", i%50)
		a.ID = idempotency.Call{Token: fmt.Append(nil, i), TTL: time.Minute, Max: idempotency.MaxCalls, Seed: 1}
		v.Decide(&a)
		if a.Err != nil {
			require.ErrorIs(t, a.Err, limit.ErrFull)
			refused++
			continue
		}
		charged++
	}
	require.Positive(t, refused)
	require.Less(t, ks.Stats().Memory, int64(most+most/4))
	used := int64(0)
	for i := range 50 {
		a.Key, a.ID.Token = fmt.Appendf(nil, "key:%d", i), nil
		v.Decide(&a)
		require.NoError(t, a.Err)
		used += a.Bucket.Capacity - a.Decision.Remaining - 1
	}
	require.EqualValues(t, charged, used, "a refused call has charged nothing")
}

// BenchmarkID measures TB.ACQUIRE without and with a token over 1,000 keys. A key remembers four
// calls.
func BenchmarkID(b *testing.B) {
	for _, identified := range []bool{false, true} {
		b.Run(fmt.Sprintf("id=%v", identified), func(b *testing.B) {
			_, v, clock := open(b, keyspace.Options{})
			a := decide.Ask{Family: decide.Bucket, Bucket: tokenbucket.Call{
				Mode: tokenbucket.Greedy, Capacity: 1e9, Init: 1e9, Count: 1, Period: time.Second, Interval: time.Second, Quantity: 1,
			}}
			var keys [1000][]byte
			for i := range keys {
				keys[i] = fmt.Appendf(nil, "user:%011d", i)
			}
			token := []byte("0192f5c2-7d6e-7b3a-9c51-000000000000")
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if a.Key = keys[n%1000]; identified {
					for i, rest := len(token)-1, n; rest > 0; i, rest = i-1, rest/10 {
						token[i] = byte('0' + rest%10)
					}
					a.ID = idempotency.Call{Token: token, TTL: time.Minute, Max: 4, Seed: 5}
				}
				if n%1000 == 0 {
					clock.Advance(time.Millisecond)
					v.Refresh()
				}
				v.Decide(&a)
			}
		})
	}
}
