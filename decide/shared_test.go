package decide_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// In the tests below, web calls and batch calls share a limit of 100 units. Batch calls keep 30 units and always
// ask for more than there is. A bucket gets a token every 20 ms, and a window takes 2 s.
const (
	sharedUnits  = 100
	keptUnits    = 30
	tokensPerSec = 50
	tokenTime    = time.Second / tokensPerSec
	windowTime   = 2 * time.Second
)

// sharedLimits are the limits for which the units kept are as good as a limit of their own.
//
// INTERVAL is not among them. Its tokens come together, at times that depend on the first call, so a bucket of
// one's own may get them earlier than the shared bucket.
var sharedLimits = map[string]func(t *testing.T, most, units int64) *decide.Ask{
	"cell": func(t *testing.T, most, units int64) *decide.Ask {
		quota, err := gcra.NewQuota(most-1, tokensPerSec, 1)
		require.NoError(t, err)
		return &decide.Ask{Family: decide.Cell, Quota: quota, Quantity: units}
	},
	"greedy":  sharedBucket,
	"fixed":   sharedWindow(slidingwindow.Fixed),
	"counter": sharedWindow(slidingwindow.Counter),
	"log":     sharedWindow(slidingwindow.Log),
	"buckets": sharedWindow(slidingwindow.Buckets),
}

func sharedBucket(_ *testing.T, most, units int64) *decide.Ask {
	a := bucketAsk(most, tokensPerSec, time.Second, units)
	return &a
}

func sharedWindow(mode slidingwindow.Mode) func(t *testing.T, most, units int64) *decide.Ask {
	return func(_ *testing.T, most, units int64) *decide.Ask {
		a := windowAsk(mode, most, windowTime, units)
		return &a
	}
}

// passes decides a on k and reports whether it passes.
func passes(t *testing.T, k *key, now limit.Instant, a *decide.Ask) bool {
	return askOn(t, k, now, a).Refused == 0
}

// takeAll sends calls for one unit that keep so many, until one is denied, and returns the number of the others.
func takeAll(t *testing.T, k *key, now limit.Instant, keep int64, one func() *decide.Ask) (granted int64) {
	for {
		a := one()
		if a.Keep = keep; !passes(t, k, now, a) {
			return granted
		}
		granted++
	}
}

// TestKeptUnitsAreAsGoodAsALimitOfTheirOwn: web calls that would all pass a limit of their own, of 30 units and with
// the same rate or window, all pass the shared limit, although batch calls take what they can before and after each
// of them. If batch calls keep one unit less, or none, web calls are denied.
func TestKeptUnitsAreAsGoodAsALimitOfTheirOwn(t *testing.T) {
	effort.Alone(t)
	for name, ask := range sharedLimits {
		for _, keep := range []int64{keptUnits, keptUnits - 1, 0} {
			t.Run(fmt.Sprintf("%s/%d", name, keep), func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(11, 31))
				var shared, own key
				now := start
				calls, denied, batch := 0, 0, int64(0)
				one := func() *decide.Ask { return ask(t, sharedUnits, 1) }
				for range effort.Steps(500, 20_000) {
					now = now.Add(time.Duration(rnd.Int64N(int64(windowTime / 3))))
					batch += takeAll(t, &shared, now, keep, one)
					units := lookAt(t, own, now, ask(t, keptUnits, 0)) // all that is promised, or a part of it
					if rnd.IntN(2) == 0 {
						units = rnd.Int64N(keptUnits)
					}
					units = max(1, units)
					if !passes(t, &own, now, ask(t, keptUnits, units)) {
						continue // more than the share of web calls: not sent
					}
					calls++
					if !passes(t, &shared, now, ask(t, sharedUnits, units)) {
						denied++
					}
					batch += takeAll(t, &shared, now, keep, one)
				}
				require.Positive(t, calls)
				require.Positive(t, batch)
				if keep == keptUnits {
					require.Zero(t, denied, "of %d", calls)
				} else {
					require.Positive(t, denied, "of %d", calls)
				}
			})
		}
	}
}

// tick is the time between two steps of a simulation, half the time of a token.
const tick = tokenTime / 2

// These are the parts of the simulated time, which follow one another.
const (
	idle      = iota // no web calls
	low              // one unit in 100 ms
	bound            // 30 units at once, and then one with every token
	above            // three units with every token
	idleAgain        // no web calls
	parts
)

const partTime = 4 * time.Second

// demand returns the units of each web call at a time after the start.
func demand(at time.Duration) []int64 {
	switch since := at % partTime; {
	case at/partTime == low && since%(100*time.Millisecond) == 0:
		return []int64{1}
	case at/partTime == bound && since == 0:
		return []int64{keptUnits}
	case at/partTime == bound && since%tokenTime == 0:
		return []int64{1}
	case at/partTime == above && since%tokenTime == 0:
		return []int64{1, 1, 1}
	}
	return nil
}

// tally has the units of a part of the simulated time.
type tally struct{ asked, web, batch int64 }

// simulate lets web and batch calls share a bucket, batch calls coming first at every tick. At every tick it checks
// that the granted units, with those that remain, are the units that a bucket without classes grants if all is taken
// from it: so no token is lost. The remaining units are at most those that batch calls keep.
func simulate(t *testing.T, keep int64) (sums [parts]tally) {
	var shared, plain key
	one := func() *decide.Ask { return sharedBucket(t, sharedUnits, 1) }
	granted, full := int64(0), int64(0)
	for at := time.Duration(0); at < parts*partTime; at += tick {
		now, sum := start.Add(at), &sums[at/partTime]
		full += takeAll(t, &plain, now, 0, one)
		batch := sharedBucket(t, sharedUnits, 2*sharedUnits)
		batch.Keep, batch.Bucket.Charge = keep, tokenbucket.Partial
		taken := 2*sharedUnits - askOn(t, &shared, now, batch).Refused
		for _, units := range demand(at) {
			sum.asked += units
			if passes(t, &shared, now, sharedBucket(t, sharedUnits, units)) {
				sum.web += units
				granted += units
			}
		}
		taken += takeAll(t, &shared, now, keep, one)
		sum.batch += taken
		granted += taken
		remain := lookAt(t, shared, now, sharedBucket(t, sharedUnits, 0))
		require.Equal(t, full, granted+remain, at)
		require.LessOrEqual(t, remain, keep, at)
	}
	require.Equal(t, int64(sharedUnits+parts*partTime/tokenTime-1), full, "100 tokens, and one more every 20 ms")
	return sums
}

// burst returns the largest number by which the units of web calls exceed, in any span of time until end, the tokens
// that come in a span of that length. It is in tokens, cut to a whole number.
func burst(end time.Duration) int64 {
	worst, sum := time.Duration(0), time.Duration(0) // as times in which so many tokens come
	for at := time.Duration(0); at < end; at += tick {
		sum = max(0, sum-tick)
		for _, units := range demand(at) {
			sum += time.Duration(units) * tokenTime
		}
		worst = max(worst, sum)
	}
	return int64(worst / tokenTime)
}

// TestIdleTokensAreUsed: no web call is denied as long as web calls ask, in every span of s seconds, for at most
// 30 + 50 s units, those that are kept and those that come. Batch calls get all that is left: every token, while
// there are no web calls. See [simulate] for what holds at every instant.
func TestIdleTokensAreUsed(t *testing.T) {
	const tokens = int64(partTime / tokenTime) // of a part
	require.EqualValues(t, keptUnits, burst(above*partTime), "as much as is promised")
	require.Greater(t, burst(parts*partTime), int64(keptUnits))
	sums := simulate(t, keptUnits)
	require.Equal(t, [parts]tally{
		idle:      {0, 0, sharedUnits - keptUnits + tokens - 1}, // at the start no token has come
		low:       {40, 40, tokens - 40},
		bound:     {tokens - 1 + keptUnits, tokens - 1 + keptUnits, 1}, // one token comes just before the 30 units
		above:     {3 * tokens, tokens, 0},                             // the kept tokens have been taken before
		idleAgain: {0, 0, tokens - keptUnits},
	}, sums)
}

// TestWithoutKeepWebCallsAreDenied: without KEEP the same batch calls take every token before the web calls.
func TestWithoutKeepWebCallsAreDenied(t *testing.T) {
	for part, sum := range simulate(t, 0) {
		require.Zero(t, sum.web, part)
	}
}

// TestEachWindowKeepsItsUnits: batch calls get 70 units of each window, and web calls up to 30, even at its end.
// Kept units that no web call takes are lost when the window ends, which is not so in a bucket.
func TestEachWindowKeepsItsUnits(t *testing.T) {
	for _, keep := range []int64{keptUnits, 0} {
		var k key
		ask := sharedWindow(slidingwindow.Fixed)
		one := func() *decide.Ask { return ask(t, sharedUnits, 1) }
		now := start.Add(windowTime - time.Duration(start)%windowTime)
		for i, asked := range []int64{0, 10, 30, 50, 0, 30} {
			batch := takeAll(t, &k, now, keep, one)
			now = now.Add(windowTime - 1)
			web := int64(0)
			for range asked {
				if passes(t, &k, now, one()) {
					web++
				}
			}
			batch += takeAll(t, &k, now, keep, one)
			require.Equal(t, sharedUnits-keep, batch, i)
			require.Equal(t, min(asked, keep), web, i)
			now = now.Add(1)
		}
	}
}
