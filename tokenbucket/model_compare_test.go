package tokenbucket_test

import (
	"math"
	"testing"
	"time"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/tokenbucket"
	"github.com/stretchr/testify/require"
)

// modelSteps returns the number of random calls for which each model is compared.
func modelSteps() int { return effort.Steps(50_000, 1_000_000) }

// TestDecisionsAgreeWithTheModels compares the algorithms with their models for random calls,
// pauses and changes of parameters. Most of them are usual, and some are at the limits of what
// can be stored.
func TestDecisionsAgreeWithTheModels(t *testing.T) {
	for _, m := range []struct {
		modes []tokenbucket.Mode
		fresh func() model
	}{
		{[]tokenbucket.Mode{tokenbucket.Greedy}, func() model { return &greedyModel{} }},
		{[]tokenbucket.Mode{tokenbucket.Debt, tokenbucket.Debt, tokenbucket.Greedy}, func() model { return &greedyModel{} }},
		{[]tokenbucket.Mode{tokenbucket.Interval}, func() model { return &intervalModel{} }},
		{[]tokenbucket.Mode{tokenbucket.Leaky}, func() model { return &leakyModel{} }},
	} {
		t.Run(m.modes[0].String(), func(t *testing.T) {
			t.Parallel()
			steps := modelSteps()
			random := newRandom(uint64(m.modes[0]))
			for played := 0; played < steps; {
				played += compareScenario(t, random, m.modes, m.fresh())
			}
		})
	}
}

// scenario draws the calls on one key.
type scenario struct {
	random  random
	modes   []tokenbucket.Mode
	calls   []tokenbucket.Call // the parameter sets in use
	current int
	last    limit.Decision
}

func newScenario(random random, modes []tokenbucket.Mode) *scenario {
	s := &scenario{random: random, modes: modes}
	largest, longest := int64(200), int64(time.Hour)
	if random.IntN(8) == 0 {
		largest, longest = 1<<62, 1<<62
	}
	short := random.IntN(4) == 0
	for len(s.calls) < 3 {
		c := call(modes[random.IntN(len(modes))], 1+random.upTo(largest-1), 1+random.upTo(50), time.Duration(1+random.upTo(longest-1)))
		if short && c.Mode != tokenbucket.Leaky {
			c.Init = random.Int64N(c.Capacity)
		}
		if c.Validate() == nil {
			s.calls = append(s.calls, c)
		}
	}
	return s
}

// pause draws the time until the next call: none, a moment, about a token, the wait of the last
// reply give or take a nanosecond, or long.
func (s *scenario) pause(c *tokenbucket.Call) time.Duration {
	switch s.random.IntN(10) {
	case 0, 1, 2:
		return 0
	case 3:
		return 1
	case 4, 5:
		return time.Duration(s.random.upTo(2 * int64(min(c.Interval, 1<<50))))
	case 6, 7:
		if s.last.RetryAfter > 0 && s.last.RetryAfter < 1<<55 {
			return s.last.RetryAfter + time.Duration(s.random.IntN(3)-1)
		}
	case 8:
		if s.last.ResetAfter > 0 && s.last.ResetAfter < 1<<55 {
			return s.last.ResetAfter + time.Duration(s.random.IntN(3)-1)
		}
	}
	return time.Duration(s.random.upTo(min(int64(c.Interval)*16, 1<<52)))
}

func (s *scenario) draw() tokenbucket.Call {
	if s.random.IntN(15) == 0 {
		s.current = s.random.IntN(len(s.calls))
	}
	c := s.calls[s.current]
	switch s.random.IntN(12) {
	case 0:
		c.Quantity = 0
	case 1:
		c.Quantity = c.Capacity
	case 2:
		c.Quantity = c.Capacity + s.random.upTo(3)
	case 3:
		c.Quantity = -s.random.upTo(c.Capacity)
	case 4:
		c.Quantity = s.random.upTo(math.MaxInt64)
	case 5, 6, 7:
		c.Quantity = 1 + s.random.upTo(c.Capacity)
	}
	switch s.random.IntN(8) {
	case 0:
		c.Charge = tokenbucket.Peek
	case 1:
		c.Charge = tokenbucket.Force
	case 2:
		if c.Mode != tokenbucket.Debt {
			c.Charge = tokenbucket.Partial
		}
	}
	switch {
	case c.Charge > tokenbucket.Peek:
	case s.random.IntN(4) == 0 && (c.Mode == tokenbucket.Greedy || c.Mode == tokenbucket.Interval):
		c.Penalize = true
	case s.random.IntN(3) == 0:
		c.Waits, c.MaxWait = true, time.Duration(s.random.upTo(min(math.MaxInt64/4, int64(c.Interval))*4))
	}
	return c
}

// compareScenario makes calls on one key and returns their number.
func compareScenario(t *testing.T, random random, modes []tokenbucket.Mode, m model) int {
	s, now := newScenario(random, modes), epoch
	var k key
	steps := 20 + random.IntN(100)
	for i := range steps {
		c := s.draw()
		now = now.Add(s.pause(&c))
		if now > epoch+1<<60 {
			return i + 1
		}
		if c.Validate() != nil {
			continue // DEBT with a quantity that can never be stored
		}
		want := m.decide(now, &c)
		err := k.decide(now, &c)
		if want.overflow {
			require.ErrorIs(t, err, limit.ErrOverflow, "%+v", c)
			require.Equal(t, tokenbucket.Keep, k.plan.Action)
			continue
		}
		if err != nil {
			require.NoError(t, err, "%+v", c)
		}
		k.apply()
		s.last = k.plan.Decision
		agree(t, now, &c, &want, s.last)
		if c.Init == c.Capacity && i%2 == 0 {
			agreeOnWaiting(t, now, &c, &want, s.last, m)
		}
	}
	return steps
}

func agree(t *testing.T, now limit.Instant, c *tokenbucket.Call, want *answer, d limit.Decision) {
	if want.refused == d.Refused && want.remaining.Int64() == d.Remaining && want.reset.Int64() == int64(d.ResetAfter) && d.Limit == c.Capacity {
		return
	}
	require.Failf(t, "differs", "%+v at %d\ngot %+v\nwant %+v", *c, now, d, *want)
}

// agreeOnWaiting checks field 4. For a grant it is the wait. For a refusal it is the first
// instant at which the model, in the state after it, admits the same call.
func agreeOnWaiting(t *testing.T, now limit.Instant, c *tokenbucket.Call, want *answer, d limit.Decision, m model) {
	asked := *c
	refused := want.refused > 0
	switch {
	case c.Quantity < 0:
		require.Equal(t, limit.NoRetry, d.RetryAfter)
		return
	case want.unstored:
		return // converted later, the debt may round up once more
	case c.Charge == tokenbucket.Force && c.Quantity > 0 && c.Mode != tokenbucket.Leaky:
		asked = with(*c, quantity(1))
		asked.Charge, asked.MaxWait, refused = tokenbucket.Whole, 0, want.overdrawn
	case c.Charge == tokenbucket.Partial && want.refused < c.Quantity:
		refused = false
	}
	problem := ""
	switch {
	case !refused || want.never:
		wait := limit.NoRetry
		if !refused && c.Quantity != 0 && want.wait != nil && want.wait.Sign() > 0 {
			wait = time.Duration(want.wait.Int64())
		}
		if d.RetryAfter != wait {
			problem = "another wait"
		}
	case d.RetryAfter < 1:
		problem = "nothing to wait for"
	case now.Add(d.RetryAfter) == limit.MaxInstant:
	case refusal(m.clone(), now.Add(d.RetryAfter-1), &asked) == 0:
		problem = "too late"
	case refusal(m.clone(), now.Add(d.RetryAfter), &asked) > 0:
		problem = "too early"
	}
	if problem != "" {
		require.Failf(t, problem, "%+v at %d\ngot %+v\nwant %+v", *c, now, d, *want)
	}
}

// refusal returns how many units the model refuses. It returns 0 if the model grants some of a
// Partial.
func refusal(m model, now limit.Instant, c *tokenbucket.Call) int64 {
	a := m.decide(now, c)
	if c.Charge == tokenbucket.Partial && a.refused < c.Quantity {
		return 0
	}
	return a.refused
}
