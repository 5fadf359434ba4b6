package slidingwindow_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/stretchr/testify/require"
)

// TestDecisionsAgreeWithTheReference compares random calls for each mode with the models, including
// idle times, edges, and changes of windows, modes and limits on live keys. A long test makes a
// million calls.
func TestDecisionsAgreeWithTheReference(t *testing.T) {
	for _, mode := range []slidingwindow.Mode{
		slidingwindow.Counter, slidingwindow.Fixed, slidingwindow.Log, slidingwindow.Buckets, slidingwindow.Calendar,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			steps := effort.Steps(50_000, 1_000_000)
			g := generator{Rand: rand.New(rand.NewPCG(uint64(mode), 4)), mode: mode}
			for steps > 0 {
				steps -= g.scenario(t)
			}
		})
	}
}

// generator generates calls that hit edges more often than chance would.
type generator struct {
	*rand.Rand
	mode slidingwindow.Mode
	now  limit.Instant
	base slidingwindow.Call // the common parameters of most calls of a scenario
	last limit.Decision
}

func (g *generator) oneOf(values ...int64) int64 { return values[g.IntN(len(values))] }

// scenario makes some calls on one key and returns their number.
func (g *generator) scenario(t *testing.T) int {
	steps := 20 + g.IntN(100)
	g.now = limit.Instant(1.5e18 + g.Int64N(1e18))
	g.base = g.windows(g.mode)
	g.last = limit.Decision{}
	persistent := g.IntN(4) == 0
	k, r := key{persistent: persistent}, reference{persistent: persistent}
	for i := range steps {
		g.step()
		c := g.call()
		d, err := k.call(t, g.now, &c)
		want := r.call(num(int64(g.now)), &c)
		if problem := judge(g.now, d, err, &want); problem != "" {
			require.Fail(t, problem, "step %d at %d: %+v\ngot %+v %v, want %+v", i, g.now, c, d, err, want)
		}
		if err == nil {
			g.last = d
		}
	}
	return steps
}

// judge describes in what way a reply is wrong, "" if it is right.
func judge(now limit.Instant, d limit.Decision, err error, want *expected) string {
	switch {
	case want.overflow || err != nil:
		if !want.overflow || err != limit.ErrOverflow { //nolint:errorlint // exactly this value is promised
			return "error"
		}
		return ""
	case d.Refused != want.refused:
		return "refused"
	case d.Remaining != want.remaining:
		return "remaining"
	case want.retry == nil && d.RetryAfter != limit.NoRetry:
		return "retry of a call that has none"
	case want.retry != nil && !first(now, d.RetryAfter, 1, want.retry):
		return "retry"
	case !first(now, d.ResetAfter, 0, want.unused):
		return "reset"
	}
	return ""
}

// first reports whether holds becomes true d after now and not earlier. least is the least possible
// d.
func first(now limit.Instant, d time.Duration, least time.Duration, holds func(*big.Int) bool) bool {
	when := plus(num(int64(now)), num(int64(d)))
	return d >= least && holds(when) && (d == least || !holds(minus(when, num(1))))
}

// windows returns the parameters of a limiter.
func (g *generator) windows(mode slidingwindow.Mode) slidingwindow.Call {
	c := slidingwindow.Call{
		Mode:          mode,
		Limit:         g.oneOf(1, 2, 3, 5, 10, 10, 100, 1000, 1_000_000, 1<<53+1, math.MaxInt64-1, math.MaxInt64),
		Window:        time.Duration(g.oneOf(1e6, 7e6, 1e8, 1e9, 1e9, 1e10, 60e9, 86400e9, 999_999_937, 1<<61-1, 1<<61)),
		LogMaxEntries: g.oneOf(1, 2, 5, 100_000),
	}
	if mode == slidingwindow.Calendar {
		c.Window, c.Calendar = 0, calendars[g.IntN(len(calendars))]
		return c
	}
	if mode == slidingwindow.Log {
		c.Limit = min(c.Limit, c.LogMaxEntries)
		return c
	}
	if mode == slidingwindow.Buckets {
		c.Slots = int(g.oneOf(2, 3, 5, 7, 10, 60))
		c.Even = g.IntN(3) == 0
	}
	switch g.IntN(4) {
	case 0:
		c.First = true
	case 1:
		c.Phase = time.Duration(g.Int64N(int64(c.Window)))
	}
	return c
}

func (g *generator) call() slidingwindow.Call {
	c := g.base
	switch g.IntN(20) {
	case 0:
		c = g.windows(slidingwindow.Mode(1 + g.IntN(5)))
	case 1:
		g.base = g.windows(g.mode)
		c = g.base
	case 2:
		limit := g.windows(g.mode).Limit
		if c.Mode == slidingwindow.Log {
			limit = min(limit, c.LogMaxEntries)
		}
		c.Limit = limit
	case 3:
		c.First = c.Mode != slidingwindow.Log && c.Mode != slidingwindow.Calendar && !c.First
		c.Phase = 0
	}
	c.Quantity = g.quantity(&c)
	switch g.IntN(8) {
	case 0:
		c.Charge = slidingwindow.Peek
		c.Penalize = g.IntN(2) == 0
	case 1:
		c.Charge = slidingwindow.Partial
	case 2:
		c.Charge = slidingwindow.Force
	case 3:
		c.Penalize = true
	}
	return c
}

func (g *generator) quantity(c *slidingwindow.Call) int64 {
	small := 1 + g.Int64N(1+min(c.Limit, 1<<62)/3)
	return g.oneOf(0, 1, 1, 1, 2, small, small, small, c.Limit, limit.SatAdd(c.Limit, 1),
		limit.CeilDiv(c.Limit, int64(max(c.Slots, 1))), -1, -small, -small, g.oneOf(math.MinInt64, math.MaxInt64))
}

// step advances the clock: not at all, to the next instant, by about a slot or a window, to the
// instant in the last reply or next to it, or by a long time.
func (g *generator) step() {
	w := int64(g.base.Window)
	edge := w - floorMod(int64(g.now)-int64(g.base.Phase), max(w, 1))
	if g.mode == slidingwindow.Calendar {
		w = int64(g.base.Calendar.Unit.Nominal())
		edge = int64(walked(g.base.Calendar).end(g.now).Sub(g.now))
	}
	slot := w / int64(max(g.base.Slots, 2))
	near := g.oneOf(-1, 0, 0, 1)
	d := g.oneOf(0, 0, 1, 1e6, slot, g.Int64N(slot), g.Int64N(slot), g.Int64N(w),
		edge+near,
		int64(g.last.RetryAfter)+near, int64(g.last.RetryAfter)+near,
		int64(g.last.ResetAfter)+near, g.Int64N(w)*3)
	// The end of the range of instants has its own test.
	if d = max(d, 0); int64(g.now) < 4e18-d {
		g.now = g.now.Add(time.Duration(d))
	}
}

func floorMod(a, b int64) int64 { return (a%b + b) % b }
