package slidingwindow_test

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/stretchr/testify/require"
)

// utc returns the instant of a time such as "2026-03-29 01:00:00".
func utc(text string) limit.Instant {
	t, err := time.Parse(time.DateTime, text)
	if err != nil {
		panic(err)
	}
	return limit.Instant(t.UnixNano())
}

// TestCalendarWindows follows keys over ends of windows. Field 5 is the time to the end.
func TestCalendarWindows(t *testing.T) {
	month := slidingwindow.Call{Mode: slidingwindow.Calendar, Limit: 10, Quantity: 4, Calendar: calendar.Rule{Unit: calendar.Month, From: 1}}
	var k key
	require.Equal(t, five{0, 10, 6, -1, 86400}, inSecondsAt(t, &k, "2026-02-28 00:00:00", month))
	require.Equal(t, five{0, 10, 2, -1, 1}, inSecondsAt(t, &k, "2026-02-28 23:59:59", month))
	require.Equal(t, five{1, 10, 2, 1, 1}, inSecondsAt(t, &k, "2026-02-28 23:59:59", month))
	require.False(t, k.plan.Foreign)
	require.Equal(t, five{0, 10, 6, -1, 31 * 86400}, inSecondsAt(t, &k, "2026-03-01 00:00:00", month))
	require.False(t, k.plan.Foreign, "a longer month is no other limit")

	day := month
	day.Calendar = calendar.Rule{Unit: calendar.Day, Zone: zone("Europe/Berlin")}
	k = key{}
	require.Equal(t, five{0, 10, 6, -1, 23 * 3600}, inSecondsAt(t, &k, "2026-03-28 23:00:00", day))
	k = key{}
	require.Equal(t, five{0, 10, 6, -1, 25 * 3600}, inSecondsAt(t, &k, "2026-10-24 22:00:00", day))
	day.Calendar.From = 150
	k = key{}
	require.Equal(t, five{0, 10, 6, -1, 1}, inSecondsAt(t, &k, "2026-03-29 01:29:59", day), "02:30 is left out, so it is 03:30")
	require.Equal(t, five{0, 10, 6, -1, 23 * 3600}, inSecondsAt(t, &k, "2026-03-29 01:30:00", day))
}

func inSecondsAt(t *testing.T, k *key, at string, c slidingwindow.Call) five {
	t.Helper()
	d, err := k.call(t, utc(at), &c)
	require.NoError(t, err)
	return inSeconds(d)
}

// TestTheStoredEndHolds: a window ends when it was to end, even if a program with other rules of the
// zone decides. The state below ends an hour before the day of Berlin does.
func TestTheStoredEndHolds(t *testing.T) {
	c := slidingwindow.Call{Mode: slidingwindow.Calendar, Limit: 10, Calendar: calendar.Rule{Unit: calendar.Day, Zone: zone("Europe/Berlin")}}
	start := utc("2026-06-30 22:00:00")
	k := key{
		mode: slidingwindow.Calendar, expiry: limit.MaxInstant,
		value: append(value(int64(start), int64(23*time.Hour), 7), "\x01\x00\x00Europe/Berlin"...),
	}
	require.Equal(t, five{0, 10, 3, -1, 1}, inSecondsAt(t, &k, "2026-07-01 20:59:59", c))
	c.Quantity = 1
	require.Equal(t, five{0, 10, 9, -1, 3600}, inSecondsAt(t, &k, "2026-07-01 21:00:00", c))
	require.False(t, k.plan.Foreign)
	require.Equal(t, "MONTH ZONE Moon/Crater FROM 15", slidingwindow.RuleOf(append(value(0, 1, 0), "\x03\x0f\x00Moon/Crater"...)))
}

// TestCalendarIsConverted: usage moves between windows of a calendar and others as between all windows.
func TestCalendarIsConverted(t *testing.T) {
	c := slidingwindow.Call{Mode: slidingwindow.Fixed, Limit: 10, Window: 24 * time.Hour, Quantity: 4}
	var k key
	require.Equal(t, five{0, 10, 6, -1, 86400}, inSecondsAt(t, &k, "2026-06-10 00:00:00", c))
	c.Mode, c.Window, c.Calendar = slidingwindow.Calendar, 0, calendar.Rule{Unit: calendar.Month, From: 11}
	c.Quantity = 0
	require.Equal(t, five{0, 10, 6, -1, 86400}, inSecondsAt(t, &k, "2026-06-10 00:00:00", c))
	require.True(t, k.plan.Foreign)
	c.Quantity = 1
	require.Equal(t, five{0, 10, 5, -1, 86400}, inSecondsAt(t, &k, "2026-06-10 00:00:00", c))
	require.True(t, k.plan.Foreign)
	c.Calendar.From = 12
	require.Equal(t, five{0, 10, 4, -1, 2 * 86400}, inSecondsAt(t, &k, "2026-06-10 00:00:00", c))
	require.True(t, k.plan.Foreign)
	require.Equal(t, five{0, 10, 3, -1, 2 * 86400}, inSecondsAt(t, &k, "2026-06-10 00:00:00", c))
	require.False(t, k.plan.Foreign)
	require.True(t, slidingwindow.Follows(k.value, &c.Calendar))
	c.Calendar.Zone = zone("Europe/Berlin")
	require.False(t, slidingwindow.Follows(k.value, &c.Calendar))
}

func TestCalendarLayout(t *testing.T) {
	c := slidingwindow.Call{Mode: slidingwindow.Calendar, Limit: 9, Quantity: 3, Calendar: calendar.Rule{Unit: calendar.Year, From: 406, Zone: zone("GMT")}}
	var k key
	inSecondsAt(t, &k, "1970-04-07 00:00:00", c)
	require.Equal(t, "000051ec21291d00"+"0000a32dd3097000"+"0300000000000000"+"04"+"9601"+hex.EncodeToString([]byte("GMT")), hex.EncodeToString(k.value))
}

// TestCalendarAtTheEnds: no instant makes Decide fail.
func TestCalendarAtTheEnds(t *testing.T) {
	for _, r := range calendars {
		for _, now := range []limit.Instant{limit.MinInstant, limit.MinInstant + 1, -1, 0, limit.MaxInstant - 1, limit.MaxInstant} {
			c := slidingwindow.Call{Mode: slidingwindow.Calendar, Limit: 9, Quantity: 3, Calendar: r}
			var k key
			d, err := k.call(t, now, &c)
			require.NoError(t, err)
			require.Positive(t, d.ResetAfter)
			require.LessOrEqual(t, d.ResetAfter, calendar.Longest)
		}
	}
}

// TestCalendarOfFarTimes: windows of a calendar before 1970, at the end of the range of instants, and of a clock that
// was set back, where a window goes on until its end, as that of FIXED.
func TestCalendarOfFarTimes(t *testing.T) {
	c := slidingwindow.Call{Mode: slidingwindow.Calendar, Limit: 10, Quantity: 4, Calendar: calendar.Rule{Unit: calendar.Month, From: 1}}
	var k key
	require.Equal(t, five{0, 10, 6, -1, 1}, inSecondsAt(t, &k, "1969-12-31 23:59:59", c))
	require.Equal(t, five{0, 10, 6, -1, 31 * 86400}, inSecondsAt(t, &k, "1970-01-01 00:00:00", c))

	k = key{}
	c.Calendar = calendar.Rule{Unit: calendar.Year, From: 101, Zone: zone("Europe/Berlin")}
	require.Equal(t, five{0, 10, 6, -1, 17}, inSecondsAt(t, &k, "2262-04-11 23:47:00", c), "until 2262-04-11 23:47:16.85")
	require.Equal(t, limit.MaxInstant, k.plan.Expiry)
	require.Equal(t, five{0, 10, 2, -1, 1}, inSecondsAt(t, &k, "2262-04-11 23:47:16", c))
	require.False(t, k.plan.Foreign)

	k = key{}
	c.Calendar = calendar.Rule{Unit: calendar.Day}
	require.Equal(t, five{0, 10, 6, -1, 12 * 3600}, inSecondsAt(t, &k, "2026-06-10 12:00:00", c))
	require.Equal(t, five{0, 10, 2, -1, 36 * 3600}, inSecondsAt(t, &k, "2026-06-09 12:00:00", c))
	require.False(t, k.plan.Foreign)

	k = key{}
	inSecondsAt(t, &k, "2026-06-10 12:00:00", c)
	c.Quantity = -3
	require.Equal(t, five{0, 10, 10, -1, 0}, inSecondsAt(t, &k, "2026-06-11 00:00:00", c), "nothing of the window before is given back")
}

func TestValidateCalendar(t *testing.T) {
	good := slidingwindow.Call{Mode: slidingwindow.Calendar, Limit: 1, Calendar: calendar.Rule{Unit: calendar.Month, From: 31}}
	require.NoError(t, good.Validate())
	for _, change := range []func(c *slidingwindow.Call){
		func(c *slidingwindow.Call) { c.Window = 1 },
		func(c *slidingwindow.Call) { c.First = true },
		func(c *slidingwindow.Call) { c.Phase = 1 },
		func(c *slidingwindow.Call) { c.Even = true },
		func(c *slidingwindow.Call) { c.Mode, c.Window = slidingwindow.Fixed, 1 },
	} {
		c := good
		change(&c)
		require.ErrorIs(t, c.Validate(), slidingwindow.ErrExclusive)
	}
	c := good
	c.Calendar.From = 32
	require.ErrorIs(t, c.Validate(), slidingwindow.ErrRange)
	c.Calendar = calendar.Rule{}
	require.ErrorIs(t, c.Validate(), slidingwindow.ErrRange)
}
