package ban_test

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/ban"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
)

const start = limit.Instant(1_700_000_000e9)

// key is a key as a store keeps it.
type key struct {
	value  []byte
	expiry limit.Instant
	writes int
}

// call decides on k at now and returns the decision.
func (k *key) call(t *testing.T, now limit.Instant, c *ban.Call, denied bool) limit.Decision {
	t.Helper()
	if k.value != nil && k.expiry <= now {
		k.value = nil
	}
	var p ban.Plan
	ban.Decide(k.value, now, c, denied, &p)
	if p.Stores {
		require.True(t, denied)
		k.value, k.expiry = p.Append(nil), p.Expiry
		require.NoError(t, ban.Check(k.value))
		require.Greater(t, p.Expiry, now)
		k.writes++
	}
	return p.Decision
}

// minutes returns the parameters of bans, with times in minutes.
func minutes(refusals int64, window, block time.Duration, factor int64, most time.Duration) *ban.Call {
	return &ban.Call{Refusals: refusals, Window: window * time.Minute, Block: block * time.Minute, Factor: factor, Max: most * time.Minute}
}

func TestBansGrowAndFall(t *testing.T) {
	var k key
	c := minutes(3, 10, 1, 2000, 5)
	at := func(minutes float64) limit.Instant { return start.Add(time.Duration(minutes * float64(time.Minute))) }
	no := limit.NoRetry
	require.Equal(t, limit.Decision{Limit: 3, Remaining: 3, RetryAfter: no}, k.call(t, at(0), c, false))
	require.Equal(t, limit.Decision{Limit: 3, Remaining: 2, RetryAfter: no, ResetAfter: 10 * time.Minute}, k.call(t, at(0), c, true))
	require.Equal(t, limit.Decision{Limit: 3, Remaining: 1, RetryAfter: no, ResetAfter: 5 * time.Minute}, k.call(t, at(5), c, true))
	require.Equal(t, limit.Decision{Limit: 3, Remaining: 2, RetryAfter: no, ResetAfter: 10 * time.Minute}, k.call(t, at(10), c, true), "the next window")
	k.call(t, at(11), c, true)
	is := limit.Decision{Refused: 1, Limit: 3, RetryAfter: time.Minute, ResetAfter: 6 * time.Minute}
	require.Equal(t, is, k.call(t, at(12), c, true), "the first ban, until 13")
	writes := k.writes
	is.RetryAfter, is.ResetAfter = time.Minute/2, 6*time.Minute-time.Minute/2
	require.Equal(t, is, k.call(t, at(12.5), c, true), "which is not counted")
	require.Equal(t, is, k.call(t, at(12.5), c, false))
	require.Equal(t, writes, k.writes)
	for range 2 {
		require.Zero(t, k.call(t, at(13), c, true).Refused)
	}
	require.Equal(t, 2*time.Minute, k.call(t, at(13), c, true).RetryAfter, "until 15")
	again := func(from float64) time.Duration {
		k.call(t, at(from), c, true)
		k.call(t, at(from), c, true)
		return k.call(t, at(from), c, true).RetryAfter
	}
	require.Equal(t, 4*time.Minute, again(15), "until 19")
	require.Equal(t, 5*time.Minute, again(19), "8 is more than the longest, until 24")
	require.Equal(t, 5*time.Minute, again(28.9), "until 33.9")
	require.Equal(t, 4*time.Minute, again(39), "one level less, until 43")
	require.Equal(t, 2*time.Minute, again(54), "two levels less, until 56")
	require.Equal(t, limit.Decision{Limit: 3, Remaining: 3, RetryAfter: no, ResetAfter: 9 * time.Minute}, k.call(t, at(57), c, false))
	require.Equal(t, time.Minute, again(66), "nothing is known")
	require.Equal(t, at(72), k.expiry)
}

func TestBansThatDoNotGrow(t *testing.T) {
	var k key
	c := minutes(1, 1, 7, ban.Whole, 60)
	for i := range 5 {
		now := start.Add(time.Duration(i) * 7 * time.Minute)
		require.Equal(t, 7*time.Minute, k.call(t, now, c, true).RetryAfter)
		require.Equal(t, now.Add(7*time.Minute), k.expiry)
	}
}

// event is a denial of the model, or a ban.
type event struct{ from, until limit.Instant }

// model decides by lists of all that has happened.
type model struct {
	denials []limit.Instant // since the start of the last window
	bans    []event
	levels  []int // before each ban
}

// level returns the level at now, of bans with the levels before them.
func (m *model) level(now limit.Instant, c *ban.Call) int {
	if len(m.bans) == 0 {
		return 0
	}
	last := len(m.bans) - 1
	level := m.levels[last]
	if power(c, level).Cmp(big.NewRat(int64(c.Max), 1)) < 0 && c.Factor > ban.Whole {
		level++
	}
	return max(0, level-int(max(0, now.Sub(m.bans[last].until))/c.Max))
}

// power returns Block × Factor^level.
func power(c *ban.Call, level int) *big.Rat {
	r := big.NewRat(int64(c.Block), 1)
	for range level {
		r.Mul(r, big.NewRat(c.Factor, ban.Whole))
	}
	return r
}

// TestBansAreThoseOfAModel compares random calls with a model that remembers everything.
func TestBansAreThoseOfAModel(t *testing.T) {
	effort.Alone(t)
	const unit = time.Millisecond // long enough that rounding does not change the level
	rnd := rand.New(rand.NewPCG(4, 2))
	total := 0
	for seed := range effort.Steps(40, 1000) {
		c := &ban.Call{
			Refusals: 1 + rnd.Int64N(5), Window: time.Duration(1+rnd.Int64N(100)) * unit, Block: time.Duration(1+rnd.Int64N(50)) * unit,
			Factor: ban.Whole + rnd.Int64N(3)*750,
		}
		c.Max = c.Block + time.Duration(rnd.Int64N(400))*unit
		require.NoError(t, c.Validate())
		var (
			k key
			m model
		)
		now := start
		for i := range 1000 {
			total++
			now = now.Add(time.Duration(rnd.Int64N([]int64{2, 20, 300, 2000}[rnd.IntN(4)])) * unit)
			denied := rnd.IntN(3) > 0
			before := k.writes
			got := k.call(t, now, c, denied)
			why := fmt.Sprintf("%d, call %d at %d: %+v", seed, i, now-start, got)
			if n := len(m.bans); n > 0 && m.bans[n-1].until > now {
				require.EqualValues(t, 1, got.Refused, why)
				require.Equal(t, m.bans[n-1].until.Sub(now), got.RetryAfter, why)
				require.Equal(t, before, k.writes, "nothing is written while the key is banned")
				continue
			}
			if len(m.denials) > 0 && now.Sub(m.denials[0]) >= c.Window {
				m.denials = nil
			}
			if denied {
				require.Equal(t, before+1, k.writes, why)
				m.denials = append(m.denials, now)
			}
			if int64(len(m.denials)) < c.Refusals {
				require.Zero(t, got.Refused, why)
				require.Equal(t, c.Refusals-int64(len(m.denials)), got.Remaining, why)
				require.Equal(t, limit.NoRetry, got.RetryAfter, why)
				continue
			}
			level := m.level(now, c)
			want, _ := power(c, level).Float64()
			want = min(want, float64(c.Max))
			require.EqualValues(t, 1, got.Refused, why)
			require.LessOrEqual(t, got.RetryAfter, c.Max)
			require.InDelta(t, want, float64(got.RetryAfter), 1000, "%s: rounded up at each level", why)
			m.bans, m.levels, m.denials = append(m.bans, event{now, now.Add(got.RetryAfter)}), append(m.levels, level), nil
		}
	}
	t.Logf("%d calls", total)
}

// TestBounds: the largest values do not overflow.
func TestBounds(t *testing.T) {
	var k key
	c := &ban.Call{Refusals: 1, Window: ban.MaxTime, Block: 1, Factor: ban.Whole + 1, Max: ban.MaxTime}
	require.NoError(t, c.Validate())
	now := start
	last := time.Duration(0)
	for range 70_000 {
		is := k.call(t, now, c, true)
		require.GreaterOrEqual(t, is.RetryAfter, last)
		require.Less(t, k.expiry, limit.MaxInstant)
		last = is.RetryAfter
		if now = now.Add(last); now > limit.MaxInstant-1<<61 {
			break
		}
	}
	for _, bad := range []func(*ban.Call){
		func(c *ban.Call) { c.Refusals = 0 }, func(c *ban.Call) { c.Refusals = ban.MaxRefusals + 1 },
		func(c *ban.Call) { c.Window = 0 }, func(c *ban.Call) { c.Window = ban.MaxTime + 1 },
		func(c *ban.Call) { c.Block = 0 }, func(c *ban.Call) { c.Block = c.Max + 1 },
		func(c *ban.Call) { c.Factor = ban.Whole - 1 }, func(c *ban.Call) { c.Factor = ban.MaxFactor + 1 },
		func(c *ban.Call) { c.Max = 0 }, func(c *ban.Call) { c.Max = ban.MaxTime + 1 },
	} {
		wrong := *c
		bad(&wrong)
		require.ErrorIs(t, wrong.Validate(), ban.ErrCall)
	}
}

// TestBytes pins the bytes of a state in files.
func TestBytes(t *testing.T) {
	var k key
	c := minutes(3, 10, 1, 2000, 1440)
	for i := range 4 {
		k.call(t, start.Add(time.Duration(i)*time.Minute), c, true)
	}
	require.Equal(t, "17979d281f000800"+"00000001"+"17979d281f000800"+"0001", hex.EncodeToString(k.value), "start, count, until, level")
	for _, bad := range [][]byte{nil, k.value[:ban.Length-1], append([]byte{}, append(k.value, 0)...), make([]byte, ban.Length+1)} {
		require.ErrorIs(t, ban.Check(bad), ban.ErrValue)
	}
	require.NoError(t, ban.Check(make([]byte, ban.Length)))
}

// FuzzDecide: no state that passes Check makes a decision fail.
func FuzzDecide(f *testing.F) {
	f.Add(make([]byte, ban.Length), int64(start), int64(3), int64(time.Minute), int64(time.Minute), int64(2000), int64(time.Hour), true)
	f.Fuzz(func(t *testing.T, value []byte, now, refusals, window, block, factor, most int64, denied bool) {
		c := ban.Call{
			Refusals: refusals, Window: time.Duration(window), Block: time.Duration(block), Factor: factor, Max: time.Duration(most),
		}
		if c.Validate() != nil || ban.Check(value) != nil {
			return
		}
		var p ban.Plan
		ban.Decide(value, limit.Instant(now), &c, denied, &p)
		require.GreaterOrEqual(t, p.Decision.Remaining, int64(0))
		require.LessOrEqual(t, p.Decision.Remaining, c.Refusals)
		require.GreaterOrEqual(t, p.Decision.ResetAfter, time.Duration(0))
		if p.Stores {
			require.NoError(t, ban.Check(p.Append(nil)))
		}
		_ = ban.Describe(value, limit.Instant(now))
	})
}
