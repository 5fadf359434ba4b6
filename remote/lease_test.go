package remote

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// lending returns limits with which every hot key gets leases of that duration.
func lending(lasts time.Duration) limits {
	l := bounds()
	l.lease, l.leased = lasts, func([]byte) bool { return true }
	return l
}

// rated asks for a unit of the key k, with rate units per second and most at once.
func rated(t testing.TB, family string, most, rate int64) *decide.Ask {
	t.Helper()
	a := &decide.Ask{Key: []byte("k")}
	switch family {
	case "GCRA":
		q, err := gcra.NewQuota(most-1, rate, 1)
		require.NoError(t, err)
		a.Family, a.Quota, a.Quantity = decide.Cell, q, 1
	case "GREEDY":
		a.Family = decide.Bucket
		a.Bucket = tokenbucket.Call{
			Mode: tokenbucket.Greedy, Capacity: most, Init: most, Count: rate, Period: time.Second,
			Interval: time.Second / time.Duration(rate), Quantity: 1,
		}
	default:
		modes := map[string]slidingwindow.Mode{"COUNTER": slidingwindow.Counter, "FIXED": slidingwindow.Fixed, "LOG": slidingwindow.Log}
		a.Family = decide.Window
		a.Window = slidingwindow.Call{Mode: modes[family], Limit: rate, Window: time.Second, Quantity: 1}
	}
	return a
}

// rush has servers whose callers all use one key.
type rush struct {
	*cloud
	servers  []*server
	calls    int64
	failed   int64
	admitted []limit.Instant
	by       map[*server]int64
	// messages is the number of requests per second once all servers had begun.
	messages float64
}

// hurry has each of n servers ask for batch units at an interval, for a while.
func hurry(t testing.TB, n int, l limits, a *decide.Ask, batch int, every, span time.Duration) *rush {
	t.Helper()
	r := &rush{cloud: newCloud(1), by: map[*server]int64{}}
	for range n {
		s := serve(r.join(network{there: 100 * time.Microsecond, back: 100 * time.Microsecond, jitter: 50 * time.Microsecond}), l)
		r.servers = append(r.servers, s)
		s.after(s.upTo(every), func() {
			s.every(every, span, func() { r.ask(s, a, batch) })
		})
	}
	r.runUntil(span / 4)
	before := r.requests
	r.runUntil(span)
	r.messages = float64(r.requests-before) / (span * 3 / 4).Seconds()
	r.runFor(time.Second)
	return r
}

func (r *rush) ask(s *server, a *decide.Ask, batch int) {
	asks := make([]decide.Ask, batch)
	refs := make([]*decide.Ask, batch)
	for i := range asks {
		asks[i] = *a
		refs[i] = &asks[i]
	}
	s.Submit(refs, false, func() {
		for i := range asks {
			r.calls++
			switch {
			case asks[i].Err != nil:
				r.failed++
			case asks[i].Decision.Allowed():
				r.by[s]++
				r.admitted = append(r.admitted, s.civil())
			}
		}
	})
}

func (r *rush) count(of func(*counters) int64) (n int64) {
	for _, s := range r.servers {
		n += of(&s.Store.count)
	}
	return n
}

// TestLeasesEndWithTheDay: four servers lease units of a day that ends while they do. No lease is used in
// the next day, so each day admits no more than its limit.
func TestLeasesEndWithTheDay(t *testing.T) {
	effort.Alone(t)
	rule := calendar.Rule{Unit: calendar.Day}
	_, first := (&calendar.Rule{Unit: calendar.Day}).Window(epoch)
	rule.From = uint16((24*time.Hour-first.Sub(epoch))/time.Minute) + 1 // the next full minute
	start, end := rule.Window(epoch)
	require.LessOrEqual(t, end.Sub(epoch), time.Minute)
	a := &decide.Ask{Key: []byte("k"), Family: decide.Window, Window: slidingwindow.Call{
		Mode: slidingwindow.Calendar, Limit: 100_000, Calendar: rule, Quantity: 1,
	}}
	r := hurry(t, 4, lending(100*time.Millisecond), a, 1, time.Millisecond, end.Sub(epoch)+5*time.Second)
	require.Positive(t, r.count(func(n *counters) int64 { return n.leased.Load() }))
	days := map[limit.Instant]int64{}
	for _, at := range r.admitted {
		day, _ := rule.Window(at)
		days[day]++
	}
	require.Len(t, days, 2)
	require.InDelta(t, 100_000, days[start], 1000)
	require.LessOrEqual(t, days[start], int64(100_000))
	require.Greater(t, days[end], int64(15_000), "the next day begins with all units")
}

// TestLeases measures the table of docs/scale-out.md: eight servers whose callers use one key, far
// more often than its limit allows, or with a very high limit.
func TestLeases(t *testing.T) {
	effort.Alone(t)
	type load struct {
		batch int
		every time.Duration
		span  time.Duration
	}
	long := func(span time.Duration) time.Duration { return span * time.Duration(effort.Steps(1, 4)) / 4 }
	much := load{32, 100 * time.Microsecond, time.Second / 2}
	twice := load{8, 320 * time.Microsecond, long(4 * time.Second)}
	for name, c := range map[string]struct {
		load
		lasts      time.Duration
		family     string
		most, rate int64
		exact      bool
		handed     float64 // smallest share of the limit that is handed out
	}{
		"limit far off, 10 ms":        {much, 10 * time.Millisecond, "GCRA", 100_000_000, 100_000_000, false, 0},
		"limit far off, 100 ms":       {much, 100 * time.Millisecond, "GCRA", 100_000_000, 100_000_000, false, 0},
		"100 k/s, burst 50 k, 10 ms":  {twice, 10 * time.Millisecond, "GCRA", 50_000, 100_000, false, 0.95},
		"100 k/s, burst 50 k, 100 ms": {twice, 100 * time.Millisecond, "GCRA", 50_000, 100_000, false, 0.9},
		"100 k/s, burst 1 k":          {twice, 100 * time.Millisecond, "GCRA", 1_000, 100_000, true, 0.95},
		"GREEDY, 100 k/s, burst 50 k": {twice, 100 * time.Millisecond, "GREEDY", 50_000, 100_000, false, 0.9},
		"FIXED, 100 k/s":              {twice, 100 * time.Millisecond, "FIXED", 100_000, 100_000, false, 0.9},
		"COUNTER, 100 k/s":            {twice, 100 * time.Millisecond, "COUNTER", 100_000, 100_000, false, 0.85},
		"1 k/s, burst 1 k, for 60 s":  {load{1, time.Millisecond, long(60 * time.Second)}, 100 * time.Millisecond, "GCRA", 1_000, 1_000, false, 0.95},
		"LOG, 1 k/s":                  {load{1, time.Millisecond, long(2 * time.Second)}, 100 * time.Millisecond, "LOG", 1_000, 1_000, true, 0.9},
	} {
		t.Run(name, func(t *testing.T) {
			r := hurry(t, 8, lending(c.lasts), rated(t, c.family, c.most, c.rate), c.batch, c.every, c.span)
			decided := float64(r.calls) / c.span.Seconds()
			leased := float64(r.count(func(n *counters) int64 { return n.leased.Load() })) / float64(r.calls)
			most := float64(c.rate) * c.span.Seconds()
			if c.family == "GCRA" || c.family == "GREEDY" {
				most += float64(c.most)
			}
			handed := float64(len(r.admitted)) / most
			over := excess(r.admitted, c.most, time.Second/time.Duration(c.rate))
			t.Logf("%.0f decisions/s, %.3f of them leased, %.0f messages/s, handed out %.3f, excess %d, failed %d",
				decided, leased, r.messages, handed, over, r.failed)

			require.Less(t, r.failed, r.calls/100)
			require.GreaterOrEqual(t, handed, c.handed)
			require.LessOrEqual(t, float64(len(r.admitted)), most+float64(c.most)/2, "in the long run there is no excess")
			if c.exact {
				require.Zero(t, leased)
				return
			}
			require.Greater(t, leased, 0.98)
			require.LessOrEqual(t, over, c.rate*int64(c.lasts)/int64(time.Second), "rate x D")
			require.LessOrEqual(t, r.messages, 2.6*8/c.lasts.Seconds())
			if c.handed == 0 {
				require.Greater(t, decided, 1e6)
				require.Len(t, r.admitted, int(r.calls-r.failed))
			}
			if c.span == time.Minute {
				require.LessOrEqual(t, over, int64(0), "over 60 s")
			}
			for _, s := range r.servers {
				require.Greater(t, r.by[s], int64(len(r.admitted)/8/4), "nobody is left out")
			}
		})
	}
}

// hot makes a key hot on a server, and returns a call for it.
func hot(t *testing.T, s *server, most int64) *decide.Ask {
	t.Helper()
	q, err := gcra.NewQuota(most-1, 1, 3600)
	require.NoError(t, err)
	a := &decide.Ask{Family: decide.Cell, Key: []byte("k"), Quota: q, Quantity: 1}
	for range 150 {
		s.call(t, a)
		require.True(t, a.Decision.Allowed())
	}
	require.NotZero(t, s.Store.count.leased.Load())
	return a
}

// TestLeasedKeyAnswersInPlace: field 3 counts the rest of the lease and the units that the engine
// had; other than plain calls are decided on the value in the engine.
func TestLeasedKeyAnswersInPlace(t *testing.T) {
	s := serve(newCloud(1).join(network{there: 100 * time.Microsecond, back: 100 * time.Microsecond}), lending(100*time.Millisecond))
	a := hot(t, s, 1_000_000)
	paid := s.used("k")
	require.Greater(t, paid, int64(150))
	requests, at := s.requests, s.Elapsed()
	for i := range int64(20) {
		s.call(t, a)
		require.Equal(t, 1_000_000-151-i, a.Decision.Remaining, "nobody else takes any")
		require.Equal(t, limit.NoRetry, a.Decision.RetryAfter)
	}
	require.Equal(t, requests, s.requests)
	require.Equal(t, at, s.Elapsed(), "no message, no time")

	look := *a
	look.Quantity = 0
	s.call(t, &look)
	require.Equal(t, 1_000_000-paid, look.Decision.Remaining, "all that is paid for")
	back := *a
	back.Quantity = -5
	s.call(t, &back)
	require.Equal(t, paid-5, s.used("k"))
	other := take(t, "k", 500_000, 1)
	s.call(t, other)
	require.Equal(t, paid-4, s.used("k"), "another limit is decided exactly")
	keeping := *a
	keeping.Keep = 1_000_000 - paid + 4
	s.call(t, &keeping)
	require.False(t, keeping.Decision.Allowed(), "what is paid for counts as used")
	keeping.Keep--
	s.call(t, &keeping)
	require.True(t, keeping.Decision.Allowed())
	require.Equal(t, paid-3, s.used("k"), "a call that leaves units is decided exactly")
	s.runFor(time.Second)
	require.EqualValues(t, 170-3, s.used("k"), "without calls all that is left is given back")
	before := s.requests
	s.runFor(time.Minute)
	require.Equal(t, before, s.requests)
}

// TestLeaseOfALimitBeyondAllTime: not all remaining units can be charged.
func TestLeaseOfALimitBeyondAllTime(t *testing.T) {
	s := serve(newCloud(1).join(network{there: 100 * time.Microsecond, back: 100 * time.Microsecond}), lending(100*time.Millisecond))
	a := take(t, "k", 1<<40, 5000)
	for i := range 200 {
		s.call(t, a)
		require.NoError(t, a.Err)
		require.True(t, a.Decision.Allowed(), "call %d", i)
		s.runFor(10 * time.Microsecond)
	}
	require.NotZero(t, s.Store.count.leased.Load())
}

// TestLeaseGoesWithItsKey: the units of a lease are lost when the key is deleted.
func TestLeaseGoesWithItsKey(t *testing.T) {
	for _, here := range []bool{true, false} {
		c := newCloud(1)
		n := network{there: 100 * time.Microsecond, back: 100 * time.Microsecond}
		s, other := serve(c.join(n), lending(100*time.Millisecond)), serve(c.join(n), bounds())
		hot(t, s, 1_000_000)
		if by := other; here {
			s.call(t, admin("k", decide.Delete))
		} else {
			by.call(t, admin("k", decide.Delete))
		}
		b := take(t, "k", 1_000_000, 1)
		other.call(t, b)
		require.EqualValues(t, 1, other.used("k"))
		s.runFor(time.Second)
		require.EqualValues(t, 1, other.used("k"), "what was paid for another key is not given back to this one")
	}
}

// TestDeadServerForfeitsItsLease: the units that it has charged remain charged, and no others.
func TestDeadServerForfeitsItsLease(t *testing.T) {
	c := newCloud(1)
	n := network{there: 100 * time.Microsecond, back: 100 * time.Microsecond}
	s, other := serve(c.join(n), lending(100*time.Millisecond)), serve(c.join(n), lending(100*time.Millisecond))
	hot(t, s, 10_000)
	paid := s.used("k")
	s.kill()
	admitted := int64(0)
	for range 20_000 {
		a := take(t, "k", 10_000, 1)
		other.call(t, a)
		require.NoError(t, a.Err)
		if a.Decision.Allowed() {
			admitted++
		}
		other.runFor(10 * time.Microsecond)
	}
	require.Equal(t, 10_000-paid, admitted)
}

// TestLeaseEndsWithoutTheEngine: the charged units are handed out until the lease ends, and then
// the policy answers.
func TestLeaseEndsWithoutTheEngine(t *testing.T) {
	s := serve(newCloud(1).join(network{there: 100 * time.Microsecond, back: 100 * time.Microsecond}), lending(100*time.Millisecond))
	a := hot(t, s, 1_000_000)
	s.drops = 1
	start := s.Elapsed()
	for s.call(t, a); a.Err == nil; s.call(t, a) {
		s.runFor(5 * time.Millisecond)
	}
	require.LessOrEqual(t, s.Elapsed()-start, 160*time.Millisecond)
	require.Greater(t, s.Elapsed()-start, 50*time.Millisecond)
	s.drops = 0
	s.runFor(time.Second)
	s.call(t, a)
	require.NoError(t, a.Err)
}

// TestLeasesOfManyGoroutines is for the race detector.
func TestLeasesOfManyGoroutines(t *testing.T) {
	i := newInstant()
	l := lending(20 * time.Millisecond)
	l.timeout = 10 * time.Second
	stores := []*Store{newStore(i, i, &silent{}, l), newStore(i, i, &silent{}, l)}
	const callers, calls, most = 8, 3000, 15_000
	admitted := make(chan int64)
	for n := range callers {
		a := take(t, "k", most, 1)
		look := *a
		look.Quantity = 0
		go func() {
			s, passed := stores[n%2], int64(0)
			for k := range calls {
				b := *a
				if k%100 == 0 {
					b = look
				}
				done := make(chan struct{})
				s.Submit([]*decide.Ask{&b}, false, func() { close(done) })
				<-done
				if b.Err == nil && b.Decision.Allowed() {
					passed += b.Quantity
				}
			}
			admitted <- passed
		}()
	}
	all := int64(0)
	for range callers {
		all += <-admitted
	}
	require.LessOrEqual(t, all, int64(most))
	require.Greater(t, all, int64(most/2))
	require.NotZero(t, stores[0].count.leased.Load()+stores[1].count.leased.Load())
}
