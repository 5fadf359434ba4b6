package remote

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote/clock"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/stretchr/testify/require"
)

// apart has servers whose clocks differ, and the entry on which all decide.
type apart struct {
	clock func(server int, at limit.Instant) limit.Instant // the server's clock at the true instant
	stamp limit.Instant
	entry entry.Entry
	plan  decide.Plan
}

// allows decides a by the clock of a server at the true instant. The instant of the decision is
// never before that of the last one.
func (p *apart) allows(t *testing.T, server int, at limit.Instant, a *decide.Ask) bool {
	now := max(p.clock(server, at), p.stamp)
	e := p.entry
	if e.Expiry <= now {
		e = entry.Entry{}
	}
	if err := p.plan.One(&e, now, a); err != nil {
		t.Fatal(err)
	}
	switch p.plan.Action {
	case decide.Store:
		e.Value = p.plan.Apply(e.Value, nil)
		p.entry, p.stamp = entry.Entry{Kind: p.plan.Kind, Expiry: p.plan.Expiry, Value: e.Value}, now
	case decide.Remove:
		p.entry = entry.Entry{}
	}
	return a.Decision.Allowed()
}

// thousand asks for one unit of a thousand per second.
func thousand(family string) *decide.Ask {
	if family == "GCRA" {
		quota, err := gcra.NewQuota(99, 1000, 1)
		if err != nil {
			panic(err)
		}
		return &decide.Ask{Family: decide.Cell, Quota: quota, Quantity: 1}
	}
	modes := map[string]slidingwindow.Mode{
		"COUNTER": slidingwindow.Counter, "LOG": slidingwindow.Log, "FIXED": slidingwindow.Fixed,
	}
	return &decide.Ask{Family: decide.Window, Window: slidingwindow.Call{
		Mode: modes[family], Limit: 1000, Window: time.Second, Quantity: 1,
	}}
}

// admitted returns the instants of the admitted calls, of 20 per millisecond for a while; which
// chooses the server that decides a call.
func admitted(t *testing.T, skew time.Duration, family string, server func(i int) int) (at []limit.Instant) {
	p := &apart{clock: func(server int, at limit.Instant) limit.Instant {
		return at.Add(time.Duration(server) * skew)
	}}
	a := thousand(family)
	for i := range 2500 * 20 {
		now := epoch.Add(time.Duration(i) * time.Millisecond / 20)
		if p.allows(t, server(i), now, a) {
			at = append(at, now)
		}
	}
	return at
}

// By how much two differing clocks exceed a limit in the worst cases: when both servers decide all
// the time, and when all calls go first to the server that is behind and then to the one that is
// ahead. For GCRA it is the excess in any span over the limit plus one per millisecond, for the
// others the excess over the limit in a span as long as the window.
func TestClocksApartExceedALimitByWhatIsPublished(t *testing.T) {
	inTurn := func(i int) int { return i % 2 }
	handOver := func(i int) int { return min(1, i/1000) }
	type figures struct{ gcra, counter, log, fixed int64 }
	measure := func(skew time.Duration, server func(int) int) figures {
		span := func(family string) int64 {
			return within(admitted(t, skew, family, server), time.Second) - 1000
		}
		return figures{
			gcra:    excess(admitted(t, skew, "GCRA", server), 100, time.Millisecond),
			counter: span("COUNTER"), log: span("LOG"), fixed: span("FIXED"),
		}
	}
	for _, c := range []struct {
		skew     time.Duration
		inTurn   figures
		handOver figures
	}{
		{0, figures{}, figures{}},
		{1 * time.Millisecond, figures{0, 1, 1, 19}, figures{1, 1, 20, 20}},
		{10 * time.Millisecond, figures{0, 10, 1, 199}, figures{10, 10, 200, 200}},
		{100 * time.Millisecond, figures{0, 100, 1, 1000}, figures{99, 100, 1000, 1000}},
	} {
		require.Equal(t, c.inTurn, measure(c.skew, inTurn), "%s apart, in turn", c.skew)
		require.Equal(t, c.handOver, measure(c.skew, handOver), "%s apart, handed over", c.skew)
	}
}

// Whichever server decides a call, at most the limit and the units of t plus the difference of the
// clocks pass within t. FIXED keeps each window, whose edge moves by the difference.
func TestClocksApartKeepTheBound(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, skew := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond} {
		for _, stretch := range []int{1, 200, 9000, 21000}[4-int(seeds(4)):] {
			server, left := 0, 0
			choose := func(int) int {
				if left--; left < 0 {
					server, left = 1-server, r.IntN(2*stretch)
				}
				return server
			}
			beyond := int64(skew / time.Millisecond)
			for family, most := range map[string]int64{"GCRA": 100, "COUNTER": 1000, "LOG": 1000} {
				got := excess(admitted(t, skew, family, choose), most, time.Millisecond)
				require.LessOrEqual(t, got, min(beyond, most), "%s, %s apart, %d in a row", family, skew, stretch)
			}
			require.LessOrEqual(t, within(admitted(t, skew, "FIXED", choose), time.Second-skew), int64(2000))
		}
	}
}

// Servers use the clock on which most nodes agree: neither a server's own stopwatch nor the clock
// of a single node has an influence.
func TestAClockAnHourAheadLocksNobodyOut(t *testing.T) {
	stopwatch := func(server int, at limit.Instant) time.Duration {
		return at.Sub(epoch) + time.Duration(server)*time.Hour
	}
	var clocks [2]clock.Clock
	for second := range 20 {
		at := epoch.Add(time.Duration(second) * time.Second)
		for server := range clocks {
			for node, ahead := range map[string]time.Duration{"a": 0, "b": time.Hour, "c": time.Millisecond} {
				sent := stopwatch(server, at)
				received := sent + time.Duration(1+server)*time.Millisecond
				clocks[server].Add(received, clock.Sample{
					Node: node, Sent: sent, Received: received,
					Shown: at.Add(received - sent).Add(ahead),
				})
			}
		}
	}
	p := &apart{clock: func(server int, at limit.Instant) limit.Instant {
		now, ok := clocks[server].Now(stopwatch(server, at))
		require.True(t, ok)
		return now
	}}
	const calls = 20_000
	var passed [2]int
	a := thousand("GCRA")
	start := epoch.Add(30 * time.Second)
	for i := range calls {
		at := start.Add(time.Duration(i) * time.Millisecond / 2)
		if p.allows(t, i/5%2, at, a) {
			passed[i/5%2]++
		}
	}
	require.InDelta(t, calls/2+100, passed[0]+passed[1], 20)
	require.InDelta(t, passed[0], passed[1], calls/10)
}
