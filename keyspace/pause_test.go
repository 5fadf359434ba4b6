package keyspace_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
)

// BenchmarkGrowth makes ten million keys one by one and reports how many of a million insertions
// took over 100 µs, and the longest. Between the insertions it calls known keys for the same time:
// calls over 100 µs among those, per million insertions, are caused by the machine.
func BenchmarkGrowth(b *testing.B) {
	const n, stretch = 10_000_000, 20_000
	for b.Loop() {
		ks := keyspace.New(keyspace.Options{Clock: clocktest.New(t0)})
		v, q := ks.NewHandle(), quota(b)
		var k [16]byte
		var made, known stalls
		for from := 0; from < n; from += stretch {
			begun := time.Now()
			for i := from; i < from+stretch; i++ {
				made.time(b, v, fmt.Appendf(k[:0], "user:%011d", i), q)
			}
			for until := time.Now().Add(time.Since(begun)); time.Now().Before(until); {
				known.time(b, v, fmt.Appendf(k[:0], "user:%011d", from), q)
			}
		}
		b.ReportMetric(float64(made.over)*1e6/n, "over-100µs/million")
		b.ReportMetric(float64(made.worst.Microseconds()), "worst-µs")
		b.ReportMetric(float64(known.over)*1e6/n, "over-100µs-without/million")
		b.ReportMetric(float64(known.worst.Microseconds()), "worst-without-µs")
		ks.Close()
	}
}

// stalls are the slow calls.
type stalls struct {
	over  int
	worst time.Duration
}

func (s *stalls) time(b *testing.B, v *keyspace.Handle, key []byte, q *gcra.Quota) {
	begun := time.Now()
	_, err := asks.Throttle(v, 0, key, q, 1)
	took := time.Since(begun)
	if err != nil {
		require.NoError(b, err)
	}
	s.worst = max(s.worst, took)
	if took > 100*time.Microsecond {
		s.over++
	}
}

// BenchmarkMassExpiry has a million keys expire at one instant while three goroutines call other
// keys. It reports how long it takes until all are gone, and how many of a million foreground calls
// took over 1 ms: meanwhile, and in the second before, when nothing expired.
func BenchmarkMassExpiry(b *testing.B) {
	const n, lasts = 1_000_000, 4 * time.Second
	for b.Loop() {
		ks := keyspace.New(keyspace.Options{Clock: clock.NewSystem(clock.Options{})})
		v := ks.NewHandle()
		v.Refresh()
		expiry := v.Now().Add(lasts)
		keys := newKeyBlock(n)
		for i := range n {
			require.NoError(b, v.Put(0, keys.at(i), entry.String, nil, expiry))
		}
		ctx, cancel := context.WithCancel(b.Context())
		var wg sync.WaitGroup
		wg.Go(func() { ks.Run(ctx) })
		var calm, busy [3]load
		time.Sleep(expiry.Sub(ks.Clock().Now()) - time.Second)
		for g := range calm {
			wg.Go(func() { calm[g], busy[g] = foreground(ctx, ks, quota(b), expiry) })
		}
		time.Sleep(expiry.Sub(ks.Clock().Now()))
		for v.Len(0) > 0 {
			time.Sleep(time.Millisecond)
			v.Refresh()
		}
		gone := ks.Clock().Now().Sub(expiry)
		cancel()
		wg.Wait()
		b.ReportMetric(float64(gone.Milliseconds()), "ms-until-gone")
		b.ReportMetric(slowest(calm), "calm-over-1ms/million")
		b.ReportMetric(slowest(busy), "busy-over-1ms/million")
		b.ReportMetric(float64(busy[0].calls+busy[1].calls+busy[2].calls), "busy-calls")
		ks.Close()
	}
}

// load is a number of calls, and how many of them took over 1 ms.
type load struct{ calls, over int }

func slowest(l [3]load) float64 {
	return float64(l[0].over+l[1].over+l[2].over) * 1e6 / float64(l[0].calls+l[1].calls+l[2].calls)
}

// foreground calls keys of its own and counts the slow calls before and after an instant.
func foreground(ctx context.Context, ks *keyspace.Keyspace, q *gcra.Quota, instant limit.Instant) (before, after load) {
	v := ks.NewHandle()
	a := &decide.Ask{DB: 1, Family: decide.Cell, Quota: *q, Quantity: 1}
	var k [16]byte
	for i := 0; ctx.Err() == nil; i++ {
		a.Key = fmt.Appendf(k[:0], "busy:%d", i%1000)
		begun := time.Now()
		l := &before
		if v.Refresh() >= instant {
			l = &after
		}
		v.Decide(a)
		l.calls++
		if time.Since(begun) > time.Millisecond {
			l.over++
		}
	}
	return before, after
}
