package tokenbucket_test

import (
	"encoding/binary"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/tokenbucket"
	"github.com/stretchr/testify/require"
)

// warmupModel is Guava's SmoothWarmingUp with a precision of 200 bits. The stored permits of the
// implementation are doubles, so the model starts each call from them. Within one call only the
// arithmetic can differ, and the comparison checks the bounds of that difference.
type warmupModel struct {
	live         bool
	next, expiry limit.Instant
	stored, most *big.Float
	warmup       time.Duration
}

func exactly(x float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(x) }

func whole(n int64) *big.Float { return new(big.Float).SetPrec(200).SetInt64(n) }

func plusReal(a, b *big.Float) *big.Float  { return exactly(0).Add(a, b) }
func minusReal(a, b *big.Float) *big.Float { return exactly(0).Sub(a, b) }
func timesReal(a, b *big.Float) *big.Float { return exactly(0).Mul(a, b) }
func overReal(a, b *big.Float) *big.Float  { return exactly(0).Quo(a, b) }

func lesserReal(a, b *big.Float) *big.Float {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// line is the price of a permit as a function of the number of stored permits.
type line struct{ stable, cold, threshold, most *big.Float }

func lineOf(c *tokenbucket.Call) line {
	l := line{stable: whole(int64(c.Interval))}
	l.cold = timesReal(l.stable, exactly(c.Cold))
	l.threshold = overReal(whole(int64(c.Warmup)), timesReal(whole(2), l.stable))
	l.most = plusReal(l.threshold, overReal(timesReal(whole(2), whole(int64(c.Warmup))), plusReal(l.stable, l.cold)))
	return l
}

// at returns the price with that many permits stored.
func (l line) at(stored *big.Float) *big.Float {
	above := minusReal(stored, l.threshold)
	if above.Sign() <= 0 {
		return l.stable
	}
	share := overReal(above, minusReal(l.most, l.threshold))
	return plusReal(l.stable, timesReal(share, minusReal(l.cold, l.stable)))
}

// price integrates the line from high down to low.
func (l line) price(low, high *big.Float) *big.Float {
	bend := l.threshold
	if low.Cmp(bend) >= 0 || high.Cmp(bend) <= 0 {
		mean := overReal(plusReal(l.at(low), l.at(high)), whole(2))
		return timesReal(minusReal(high, low), mean)
	}
	return plusReal(l.price(low, bend), l.price(bend, high))
}

// resync returns the stored permits at now, according to the line of the call.
func (m *warmupModel) resync(now limit.Instant, l line) *big.Float {
	if !m.live {
		return l.most
	}
	stored := m.stored
	if now > m.next {
		gained := overReal(timesReal(whole(int64(now-m.next)), m.most), whole(int64(m.warmup)))
		stored = lesserReal(m.most, plusReal(stored, gained))
	}
	return overReal(timesReal(stored, l.most), m.most)
}

// TestWarmupModel compares warm-up with its model: whether a call passes, its wait and the promised
// instants exactly, prices and permits within their error.
func TestWarmupModel(t *testing.T) {
	t.Parallel()
	steps := modelSteps()
	random := newRandom(5)
	for played := 0; played < steps; {
		played += compareWarmup(t, random)
	}
}

func compareWarmup(t *testing.T, random random) int {
	var calls []tokenbucket.Call
	for len(calls) < 2 {
		c := call(tokenbucket.Warmup, 1+random.upTo(1000), 1+random.upTo(50), time.Duration(1+random.upTo(int64(time.Hour))))
		c.Warmup, c.Cold = time.Duration(1+random.upTo(int64(24*time.Hour))), 1+float64(random.upTo(64))/4
		if c.Validate() == nil {
			calls = append(calls, c)
		}
	}
	var k key
	var m warmupModel
	now, steps, last := epoch, 20+random.IntN(100), limit.Decision{}
	for range steps {
		c := calls[0]
		if random.IntN(15) == 0 {
			calls[0], calls[1] = calls[1], calls[0]
		}
		switch random.IntN(6) {
		case 0:
			c.Quantity = random.upTo(c.Capacity + 1)
		case 1:
			c.Quantity = -random.upTo(c.Capacity)
		}
		switch random.IntN(6) {
		case 0:
			c.Charge = tokenbucket.Peek
		case 1:
			c.Charge = tokenbucket.Force
		default:
			c.MaxWait, c.Waits = time.Duration(random.upTo(int64(c.Interval)*4)), true
		}
		switch random.IntN(6) {
		case 0:
			now = now.Add(time.Duration(random.upTo(2 * int64(c.Warmup))))
		case 1, 2:
			now = now.Add(max(0, last.RetryAfter) + time.Duration(random.IntN(2)))
		case 3:
			now = now.Add(time.Duration(random.upTo(2 * int64(c.Interval))))
		}
		last = m.compare(t, now, &k, &c)
	}
	return steps
}

// compare makes a call on both and copies the key's state into the model.
func (m *warmupModel) compare(t *testing.T, now limit.Instant, k *key, c *tokenbucket.Call) limit.Decision {
	m.live = m.live && now < m.expiry
	l := lineOf(c)
	stored, next := m.resync(now, l), now
	if m.live {
		next = max(now, m.next)
	}
	wait, refused, changes := next.Sub(now), int64(0), false
	slack := 3.0 // how far the next instant may be below that of the model
	switch {
	case c.Quantity < 0:
		changes = m.live && c.Charge != tokenbucket.Peek
		if changes {
			next = max(now, next.Add(c.Interval*time.Duration(c.Quantity)))
		}
	case c.Quantity == 0:
	case c.Charge != tokenbucket.Force && (c.Quantity > c.Capacity || wait > c.MaxWait):
		refused = 1
	case c.Charge != tokenbucket.Peek:
		changes = true
		spent := lesserReal(whole(c.Quantity), stored)
		cost := plusReal(l.price(minusReal(stored, spent), stored), timesReal(minusReal(whole(c.Quantity), spent), l.stable))
		ns, _ := cost.Int64()
		next, stored = next.Add(time.Duration(ns)), minusReal(stored, spent)
	}
	require.NoError(t, k.decide(now, c))
	k.apply()
	d := k.plan.Decision
	m.checkAnswer(t, c, d, refused, wait)
	if c.Quantity <= 0 || !changes {
		slack = 0
	}
	slack += c.Cold * float64(c.Warmup) / (1 << 48)
	if behind := next.Sub(now) - d.ResetAfter; math.Abs(float64(behind)) > slack {
		require.Failf(t, "another instant", "%v off: %+v", behind, *c)
	}
	if !changes || k.plan.Action == tokenbucket.Delete {
		require.True(t, changes || k.plan.Action == tokenbucket.Keep)
		m.live = m.live && k.mode != tokenbucket.None
		return d
	}
	m.adopt(k, c)
	if want, _ := stored.Float64(); math.Abs(want-m.storedPermits()) > 1e-9*math.Max(1, m.mostPermits()) {
		require.Failf(t, "other permits", "%v, want %v: %+v", m.storedPermits(), want, *c)
	}
	missing := overReal(timesReal(minusReal(m.most, m.stored), whole(int64(m.warmup))), m.most)
	cold, _ := missing.Float64()
	if off := float64(m.expiry.Sub(m.next)) - cold; math.Abs(off) > 2+float64(c.Warmup)/(1<<48) {
		require.Failf(t, "another expiry", "%v off: %+v", off, *c)
	}
	return d
}

func (m *warmupModel) checkAnswer(t *testing.T, c *tokenbucket.Call, d limit.Decision, refused int64, wait time.Duration) {
	retry := limit.NoRetry
	switch {
	case refused == 1 && c.Quantity <= c.Capacity:
		retry = wait - c.MaxWait
	case refused == 0 && c.Quantity > 0 && wait > 0:
		retry = wait
	}
	remaining := int64(1)
	if d.ResetAfter > 0 {
		remaining = 0
	}
	if d.Refused != refused || d.RetryAfter != retry || d.Remaining != remaining || d.Limit != c.Capacity {
		require.Failf(t, "differs", "%+v\ngot %+v\nwant refused %d, retry %v", *c, d, refused, retry)
	}
}

// adopt copies the stored state of the key into the model.
func (m *warmupModel) adopt(k *key, c *tokenbucket.Call) {
	bits := func(i int) uint64 { return binary.LittleEndian.Uint64(k.value[8*i:]) }
	m.live, m.expiry, m.next = true, k.expiry, limit.Instant(bits(0))
	m.stored, m.most = exactly(math.Float64frombits(bits(1))), exactly(math.Float64frombits(bits(2)))
	m.warmup = c.Warmup
}

func (m *warmupModel) storedPermits() float64 { f, _ := m.stored.Float64(); return f }
func (m *warmupModel) mostPermits() float64   { f, _ := m.most.Float64(); return f }
