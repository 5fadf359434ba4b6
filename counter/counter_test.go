package counter_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/counter"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/longdouble"
)

const never = limit.MaxInstant

// whole returns a call for integers without bounds.
func whole(by int64) counter.Call {
	return counter.Call{By: by, Lower: math.MinInt64, Upper: math.MaxInt64}
}

func TestExpiry(t *testing.T) {
	for _, row := range []struct {
		name    string
		exists  bool
		expiry  limit.Instant
		does    counter.Expiry
		at      limit.Instant
		action  counter.Action
		becomes limit.Instant
	}{
		{"a new key has none", false, never, counter.Leave, 0, counter.Store, never},
		{"it stays what it is", true, 50, counter.Leave, 0, counter.Store, 50},
		{"set", true, 50, counter.Set, 40, counter.Store, 40},
		{"set on a new key", false, never, counter.Set, 40, counter.Store, 40},
		{"set if none, of one that ends", true, 50, counter.SetIfNone, 40, counter.Store, 50},
		{"set if none, of one that never ends", true, never, counter.SetIfNone, 40, counter.Store, 40},
		{"set if none, on a new key", false, 50, counter.SetIfNone, 40, counter.Store, 40},
		{"never", true, 50, counter.Never, 0, counter.Store, never},
		{"passed", true, 50, counter.Set, 10, counter.Remove, 10},
		{"passed, without the key", false, never, counter.Set, 10, counter.Keep, 10},
		{"passed, but not set", true, 50, counter.SetIfNone, 9, counter.Store, 50},
	} {
		c := whole(1)
		c.Expiry, c.At = row.does, row.at
		var p counter.Plan
		require.NoError(t, counter.Decide([]byte("7"), row.exists, row.expiry, 10, &c, &p), row.name)
		require.Equal(t, row.action, p.Action, row.name)
		require.Equal(t, row.becomes, p.Expiry, row.name)
		value := int64(1)
		if row.exists {
			value = 8
		}
		require.Equal(t, counter.Result{Value: value, Applied: 1}, p.Result, row.name)
	}
}

// TestWholeNumbersAgreeWithExactOnes compares random calls near zero and near the ends of int64
// with sums that cannot overflow.
func TestWholeNumbersAgreeWithExactOnes(t *testing.T) {
	r := rand.New(rand.NewPCG(27, 2))
	edges := []int64{math.MinInt64, math.MinInt64 / 2, 0, math.MaxInt64 / 2, math.MaxInt64}
	draw := func() int64 { return limit.SatAdd(edges[r.IntN(len(edges))], r.Int64N(11)-5) }
	var p counter.Plan
	for range effort.Steps(200_000, 5_000_000) {
		was, c := draw(), counter.Call{By: draw(), Lower: draw(), Upper: draw(), Saturate: r.IntN(2) == 0}
		if c.Lower > c.Upper {
			c.Lower, c.Upper = c.Upper, c.Lower
		}
		err := counter.Decide(strconv.AppendInt(nil, was, 10), true, never, 0, &c, &p)
		sum := new(big.Int).Add(big.NewInt(was), big.NewInt(c.By))
		low, high := big.NewInt(c.Lower), big.NewInt(c.Upper)
		fits := sum.Cmp(low) >= 0 && sum.Cmp(high) <= 0
		if !fits {
			if !c.Saturate {
				require.NoError(t, err)
				require.Equal(t, counter.Plan{Result: counter.Result{Value: was, Denied: true}, Expiry: p.Expiry}, p)
				continue
			}
			if sum.Cmp(low) < 0 {
				sum = low
			} else {
				sum = high
			}
		}
		applied := new(big.Int).Sub(sum, big.NewInt(was))
		if !applied.IsInt64() {
			require.ErrorIs(t, err, counter.ErrAppliedOverflow)
			require.Equal(t, counter.Keep, p.Action)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, counter.Store, p.Action)
		require.Equal(t, [2]int64{sum.Int64(), applied.Int64()}, [2]int64{p.Value, p.Applied}, "%d %+v", was, c)
		require.Equal(t, !fits && p.Applied == 0, p.Denied)
		require.Equal(t, sum.String(), string(p.Append(nil)))
	}
}

// TestDecision: the decision is like that of a limiter with the upper bound. A call that NX or XX
// declines is not denied.
func TestDecision(t *testing.T) {
	number := func(text string) *big.Float {
		n, ok := longdouble.Parse([]byte(text))
		require.True(t, ok)
		return n
	}
	decide := func(value string, c counter.Call) limit.Decision {
		var p counter.Plan
		require.NoError(t, counter.Decide([]byte(value), true, never, 0, &c, &p))
		return c.Decision(&p.Result)
	}
	of := func(refused, most, left int64) limit.Decision {
		return limit.Decision{Refused: refused, Limit: most, Remaining: left, RetryAfter: limit.NoRetry}
	}
	ints := func(by, upper int64) counter.Call { return counter.Call{By: by, Lower: math.MinInt64, Upper: upper} }
	floats := func(by, upper string) counter.Call {
		return counter.Call{Float: &counter.Floats{By: number(by), Lower: longdouble.Neg(longdouble.Max()), Upper: number(upper)}}
	}
	require.Equal(t, of(0, 5, 1), decide("3", ints(1, 5)))
	require.Equal(t, of(1, 5, 2), decide("3", ints(3, 5)))
	require.Equal(t, of(1, 5, 0), decide("9", ints(0, 5)), "above a bound that was lowered")
	require.Equal(t, of(0, 5, math.MaxInt64), decide("-9223372036854775807", ints(-1, 5)))
	require.Equal(t, of(0, 5, 3), decide("1", floats("1.5", "5")))
	require.Equal(t, of(1, 5, 1), decide("4", floats("1.5", "5")))
	saturated := ints(3, 5)
	saturated.Saturate = true
	require.Equal(t, of(0, 5, 0), decide("3", saturated), "a part was added")
	require.Equal(t, of(1, 5, 0), decide("5", saturated), "nothing was added")
	absent := ints(1, 5)
	absent.IfAbsent = true
	require.Equal(t, of(0, 5, 2), decide("3", absent))
	absent.By = 3
	require.Equal(t, of(0, 5, 2), decide("3", absent), "out of bounds besides")
}

// TestWhatIsAppliedIsTheDifference: if a sum is rounded, the reply has the actual change of the
// number.
func TestWhatIsAppliedIsTheDifference(t *testing.T) {
	one, ok := longdouble.Parse([]byte("1"))
	require.True(t, ok)
	c := counter.Call{Float: &counter.Floats{By: one, Lower: longdouble.Neg(longdouble.Max()), Upper: longdouble.Max()}}
	var p counter.Plan
	require.NoError(t, counter.Decide([]byte("100000000000000000000"), true, never, 0, &c, &p))
	require.Equal(t, [2]string{"100000000000000000000", "0"}, *p.Texts)
	require.NoError(t, counter.Decide([]byte("18446744073709551616"), true, never, 0, &c, &p))
	require.Equal(t, "0", p.Texts[1], "65 bits do not fit")
}

func TestWholeNumbersAllocateNothing(t *testing.T) {
	c := whole(1)
	c.Upper, c.Expiry, c.At = 1_000_000, counter.SetIfNone, 1e9
	value, room := []byte("999000"), make([]byte, 0, counter.MaxInteger)
	var p counter.Plan
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if counter.Decide(value, true, never, 5, &c, &p) == nil {
			room = p.Append(room[:0])
		}
	}))
	require.Equal(t, "999001", string(room))
}

func TestCheck(t *testing.T) {
	for _, text := range []string{"0", "-1", "1.5", "-0.25", "9223372036854775807", strings.Repeat("9", 4933)} {
		require.NoError(t, counter.Check([]byte(text)), text)
	}
	for _, text := range []string{"", "-", ".", "1.", ".5", "1.2.3", "+1", "1e5", "inf", " 1", "1x", strings.Repeat("9", counter.MaxText+1)} {
		require.ErrorIs(t, counter.Check([]byte(text)), limit.ErrWrongType, text)
	}
	longest := longdouble.Append(nil, longdouble.Max())
	require.Len(t, longest, 4933)
	require.NoError(t, counter.Check(longest))
}

// FuzzDecide: whatever a key holds, a call gets a decision or an error, and what it stores can be
// read again.
func FuzzDecide(f *testing.F) {
	f.Add([]byte("1"), int64(5), int64(-3), int64(9), true)
	f.Add([]byte("-9223372036854775808"), int64(-1), int64(math.MinInt64), int64(0), true)
	f.Fuzz(func(t *testing.T, value []byte, by, lower, upper int64, saturate bool) {
		lower, upper = min(lower, upper), max(lower, upper)
		c := counter.Call{By: by, Lower: lower, Upper: upper, Saturate: saturate}
		var p counter.Plan
		for range 2 {
			if counter.Decide(value, true, never, 0, &c, &p) != nil || p.Action == counter.Keep {
				require.Equal(t, counter.Keep, p.Action)
			} else {
				stored := p.Append(nil)
				require.NoError(t, counter.Check(stored))
				var again counter.Plan
				look := counter.Call{Lower: math.MinInt64, Upper: math.MaxInt64}
				if p.Texts != nil {
					look.Float = &counter.Floats{By: new(big.Float), Lower: longdouble.Neg(longdouble.Max()), Upper: longdouble.Max()}
				}
				require.NoError(t, counter.Decide(stored, true, never, 0, &look, &again))
				require.Equal(t, string(stored), string(again.Append(nil)))
			}
			float := func(n int64) *big.Float { return new(big.Float).SetPrec(64).SetInt64(n) }
			c.Float = &counter.Floats{By: float(by), Lower: float(lower), Upper: float(upper)}
		}
	})
}
