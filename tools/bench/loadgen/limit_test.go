package loadgen_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
	"github.com/cellserver/cellserver/tools/bench/loadgen"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func limitOf(t require.TestingT, text string, shape loadgen.Shape) *loadgen.Limit {
	template, err := loadgen.ParseTemplate(text, shape)
	require.NoError(t, err, text)
	return template.Limit()
}

func TestLimitBounds(t *testing.T) {
	for _, c := range []struct {
		text string
		most int64
		// bounds at 0, 1, 60 and 61.5 seconds
		bounds [4]int64
	}{
		{"CL.THROTTLE k 15 30 60", 16, [4]int64{16, 16, 46, 46}},
		{"rl.throttle k 0 1 1 1", 1, [4]int64{1, 2, 61, 62}},
		{"CL.THROTTLE k -1 30 60", 0, [4]int64{0, 0, 30, 30}},
		{"CL.THROTTLE k 5 -30 60", 6, [4]int64{0, 0, 0, 0}},
		{"SW.ALLOW k 10 60", 10, [4]int64{11, 11, 21, 21}},
		{"SW.ALLOW k 10 60 1 FIXED", 10, [4]int64{20, 20, 30, 30}},
		{"SW.ALLOW k 10 day 1 ZONE Europe/Berlin FROM 06:30 MS", 10, [4]int64{20, 20, 20, 20}},
		{"SW.ALLOW k 10 MONTH FIXED", 10, [4]int64{20, 20, 20, 20}},
		{"SW.ALLOW k 10 60000 LOG MS", 10, [4]int64{10, 10, 20, 20}},
		{"SW.ALLOW k 10 60 BUCKETS 5", 10, [4]int64{10, 10, 20, 20}},
		{"SW.ALLOW k 10 60 BUCKETS 5 EVEN", 10, [4]int64{4, 4, 14, 14}},
		{"SW.ALLOW k 10 60 3 PENALIZE ANCHOR FIRST", 10, [4]int64{11, 11, 21, 21}},
		{"SW.ALLOW k 10 60 3 BLOCK 5", 10, [4]int64{11, 11, 21, 21}},
		{"TB.ACQUIRE k 10 2 1", 10, [4]int64{10, 12, 130, 133}},
		{"TB.ACQUIRE k 10 2 1 INTERVAL", 10, [4]int64{12, 14, 132, 134}},
		{"TB.ACQUIRE k 10 2 1 LEAKY", 10, [4]int64{11, 13, 131, 134}},
		{"TB.ACQUIRE k 10 2 1 4 DEBT INIT 0", 10, [4]int64{14, 16, 134, 137}},
		{"TB.ACQUIRE k 10 2 1 WAIT 3", 10, [4]int64{16, 18, 136, 139}},
		{"TB.ACQUIRE k 10 2 1000 WARMUP 4000 COLD 3 MS", 10, [4]int64{1, 3, 121, 124}},
		{"CC.ACQUIRE k 5 30 m{seq}", 5, [4]int64{5, 5, 15, 15}},
		{"CC.ACQUIRE k 5 500 m{seq} MS BLOCK 1", 5, [4]int64{5, 15, 605, 620}},
	} {
		l := limitOf(t, c.text, one)
		require.NotNil(t, l, c.text)
		require.Equal(t, c.most, l.Most, c.text)
		for i, span := range []time.Duration{0, time.Second, time.Minute, 61500 * time.Millisecond} {
			bound, ok := l.Bound(span)
			require.True(t, ok, c.text)
			require.Equal(t, c.bounds[i], bound, "%s within %v", c.text, span)
		}
	}
}

func TestLimitsWithoutABoundSayWhy(t *testing.T) {
	for _, text := range []string{
		"SW.ALLOW k 10 60 FORCE", "TB.ACQUIRE k 10 1 1 FORCE", "TB.ACQUIRE k 10 1 1 BLOCK 0",
		"CL.THROTTLE k 15 30 60 -1", "CL.THROTTLE k 15 30 60 {q}",
		"CC.ACQUIRE k 10 60 me",
	} {
		l := limitOf(t, text, loadgen.Shape{MinQuantity: -1, MaxQuantity: 2})
		require.NotNil(t, l, text)
		_, ok := l.Bound(time.Second)
		require.False(t, ok, text)
		require.NotEmpty(t, l.Unbounded(), text)
	}
}

func TestOtherCommandsAreNoLimits(t *testing.T) {
	for _, text := range []string{
		"PING", "GET {key}", "CL.THROTTLE", "CL.THROTTLE k", "CL.THROTTLE k 1 2", "CL.THROTTLE k 1 2 0", "CL.THROTTLE k a 2 3",
		"CL.THROTTLE k 1 2 3 4 5", "SW.ALLOW k 1", "SW.ALLOW k 0 1", "SW.ALLOW k 1 1 WHAT", "SW.ALLOW k 1 1 BUCKETS x",
		"SW.ALLOW k 1 1 BUCKETS 1", "SW.ALLOW k 1 1 2x", "SW.ALLOW k 1 DAY ZONE Berlin",
		"SW.ALLOW k 1 DAY FROM 1", "SW.ALLOW k 1 DAY ZONE", "SW.ALLOW k 1 1 ZONE UTC", "SW.ALLOW k 1 DAY LOG", "SW.ALLOW k 1 DAY BUCKETS 4", "TB.ACQUIRE k 1 1", "TB.ACQUIRE k 0 1 1", "TB.ACQUIRE k 1 1 1 COLD x",
		"TB.ACQUIRE k 1 9999999999 1", "TB.ACQUIRE k 1 1 1 WHAT", "RL.MULTI 2 k CL 1 1 1",
		"RL.MULTI x k CL 1 1 1", "RL.MULTI 1 k", "RL.MULTI 1 k XX 1 1 1", "RL.MULTI 1 k CL 1 1 0", "RL.MULTI 1 k CL 1 1 1 SW 1 1",
		"RL.MULTI 1 k CL 1 1 1 WITHDETAILS", "CC.ACQUIRE k 1 1", "CC.ACQUIRE k 0 1 m", "CC.ACQUIRE k 1 1 m WHAT", "CC.ACQUIRE k 1 1 m BLOCK x",
	} {
		require.Nil(t, limitOf(t, text, one), text)
	}
}

// A limiter decides about one key with the server's own code.
type limiter func(now limit.Instant, quantity int64) (granted int64)

func throttler(t require.TestingT, burst, count, period int64) limiter {
	quota, err := gcra.NewQuota(burst, count, period)
	require.NoError(t, err)
	var tat limit.Instant
	return func(now limit.Instant, quantity int64) int64 {
		next, d, _ := gcra.Decide(tat, now, &quota, quantity)
		tat = next
		if d.Refused != 0 {
			return 0
		}
		return quantity
	}
}

func windows(t require.TestingT, c slidingwindow.Call) limiter {
	require.NoError(t, c.Validate())
	var mode slidingwindow.Mode
	var value []byte
	var expiry limit.Instant
	return func(now limit.Instant, quantity int64) int64 {
		if now >= expiry {
			mode, value = slidingwindow.None, nil
		}
		c.Quantity = quantity
		var p slidingwindow.Plan
		require.NoError(t, slidingwindow.Decide(mode, value, expiry, now, &c, &p))
		switch p.Action {
		case slidingwindow.Store:
			value = p.Apply(value, nil)
			mode, expiry = p.Mode, p.Expiry
		case slidingwindow.Delete:
			expiry = now
		case slidingwindow.Keep:
		}
		return granted(p.Decision.Refused, quantity, c.Charge == slidingwindow.Partial)
	}
}

func bucket(t require.TestingT, c tokenbucket.Call) limiter {
	c.Interval, c.Init = limit.Interval(int64(c.Period), 1, c.Count), c.Capacity
	require.NoError(t, c.Validate())
	var mode tokenbucket.Mode
	var value []byte
	var expiry limit.Instant
	return func(now limit.Instant, quantity int64) int64 {
		if now >= expiry {
			mode, value = tokenbucket.None, nil
		}
		c.Quantity = quantity
		var p tokenbucket.Plan
		require.NoError(t, tokenbucket.Decide(mode, value, expiry, now, &c, &p))
		switch p.Action {
		case tokenbucket.Store:
			value = p.Apply(value, nil)
			mode, expiry = p.Mode, p.Expiry
		case tokenbucket.Delete:
			expiry = now
		default:
		}
		return granted(p.Decision.Refused, quantity, c.Charge == tokenbucket.Partial)
	}
}

func granted(refused, quantity int64, partial bool) int64 {
	switch {
	case partial:
		return quantity - refused
	case refused != 0:
		return 0
	}
	return quantity
}

// limiterKinds is the number of kinds that limiterOf returns.
const limiterKinds = 15

// anyLimiter draws a limiter and the command that uses it.
func anyLimiter(t *rapid.T) (string, limiter) {
	return limiterOf(t, rapid.IntRange(0, limiterKinds-1).Draw(t, "kind"))
}

func limiterOf(t *rapid.T, kind int) (string, limiter) {
	most := rapid.Int64Range(1, 20).Draw(t, "limit")
	count := rapid.Int64Range(1, 50).Draw(t, "count")
	seconds := rapid.Int64Range(1, 5).Draw(t, "period")
	period := time.Duration(seconds) * time.Second
	slots := rapid.IntRange(2, 7).Draw(t, "slots")
	wait := rapid.Int64Range(0, 3).Draw(t, "wait")
	waits := time.Duration(wait) * time.Second
	window := slidingwindow.Call{Limit: most, Window: period, Mode: slidingwindow.Counter}
	tokens := tokenbucket.Call{Mode: tokenbucket.Greedy, Capacity: most, Count: count, Period: period, Cold: 3}
	sw := fmt.Sprintf("SW.ALLOW k %d %d {q} ", most, seconds)
	tb := fmt.Sprintf("TB.ACQUIRE k %d %d %d {q} ", most, count, seconds)
	switch kind {
	case 0:
		return fmt.Sprintf("CL.THROTTLE k %d %d %d {q}", most-1, count, seconds), throttler(t, most-1, count, seconds)
	case 1:
		return sw, windows(t, window)
	case 2:
		window.Mode = slidingwindow.Fixed
		return sw + "FIXED", windows(t, window)
	case 3:
		window.Mode, window.First = slidingwindow.Fixed, true
		return sw + "FIXED ANCHOR FIRST", windows(t, window)
	case 4:
		window.Mode = slidingwindow.Log
		return sw + "LOG", windows(t, window)
	case 5:
		window.Mode, window.Slots = slidingwindow.Buckets, slots
		return sw + fmt.Sprintf("BUCKETS %d", slots), windows(t, window)
	case 6:
		window.Mode, window.Slots, window.Even = slidingwindow.Buckets, slots, true
		return sw + fmt.Sprintf("BUCKETS %d EVEN", slots), windows(t, window)
	case 7:
		window.Charge = slidingwindow.Partial
		return sw + "PARTIAL", windows(t, window)
	case 8:
		tokens.Waits, tokens.MaxWait = true, waits
		return tb + fmt.Sprintf("WAIT %d", wait), bucket(t, tokens)
	case 9:
		tokens.Mode, tokens.Waits, tokens.MaxWait = tokenbucket.Interval, true, waits
		return tb + fmt.Sprintf("INTERVAL WAIT %d", wait), bucket(t, tokens)
	case 10:
		tokens.Mode = tokenbucket.Leaky
		return tb + "LEAKY", bucket(t, tokens)
	case 11:
		tokens.Mode, tokens.Waits, tokens.MaxWait = tokenbucket.Debt, true, waits
		return tb + fmt.Sprintf("DEBT WAIT %d", wait), bucket(t, tokens)
	case 12: // a window begins 40 seconds after the epoch of these tests, which is 22:13:20
		window.Mode, window.Window, window.Calendar = slidingwindow.Calendar, 0, calendar.Rule{Unit: calendar.Day, From: 22*60 + 14}
		return fmt.Sprintf("SW.ALLOW k %d DAY {q} FROM 22:14", most), windows(t, window)
	case 13:
		tokens.Penalize = true
		return tb + "PENALIZE", bucket(t, tokens)
	default:
		tokens.Mode, tokens.Warmup = tokenbucket.Warmup, 2*period
		return tb + fmt.Sprintf("WARMUP %d", 2*seconds), bucket(t, tokens)
	}
}

// TestBoundsHold sends random traffic to every limiter: what it grants within any span is at most
// the bound of that span.
func TestBoundsHold(t *testing.T) {
	const start = limit.Instant(1_700_000_000 * time.Second)
	rapid.Check(t, func(t *rapid.T) {
		text, decide := anyLimiter(t)
		l := limitOf(t, text, loadgen.Shape{MinQuantity: 1, MaxQuantity: 6})
		require.NotNil(t, l, text)
		type grant struct {
			at    limit.Instant
			units int64
		}
		var grants []grant
		now := start.Add(time.Duration(rapid.Int64Range(0, 5e9).Draw(t, "offset")))
		for range rapid.IntRange(1, 80).Draw(t, "calls") {
			now = now.Add(time.Duration(rapid.OneOf(
				rapid.Just(int64(0)), rapid.Int64Range(0, 50e6), rapid.Int64Range(0, 2e9),
			).Draw(t, "pause")))
			if units := decide(now, rapid.Int64Range(1, 6).Draw(t, "quantity")); units > 0 {
				grants = append(grants, grant{now, units})
			}
		}
		for first := range grants {
			sum := int64(0)
			for _, g := range grants[first:] {
				sum += g.units
				span := g.at.Sub(grants[first].at)
				bound, ok := l.Bound(span)
				require.True(t, ok)
				require.LessOrEqual(t, sum, bound, "%s granted %d within %v", text, sum, span)
			}
		}
	})
}

// TestBoundOfThrottleIsTight shows that the bound of CL.THROTTLE is reached: a key that is used
// without a pause is granted all of it.
func TestBoundOfThrottleIsTight(t *testing.T) {
	l := limitOf(t, "CL.THROTTLE k 15 30 60", one)
	decide := throttler(t, 15, 30, 60)
	sum := int64(0)
	for at := time.Duration(0); at <= time.Minute; at += 100 * time.Millisecond {
		sum += decide(limit.Instant(1e18).Add(at), 1)
		bound, _ := l.Bound(at)
		if sum >= 16 {
			require.Equal(t, bound, sum, "after %v", at)
		}
	}
}
