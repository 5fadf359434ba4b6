package clause

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/slidingwindow"
)

func TestCalendarWindow(t *testing.T) {
	berlin, ok := zoneOf([]byte("Europe/Berlin"))
	require.True(t, ok)
	base := slidingwindow.Call{Mode: slidingwindow.Calendar, Limit: 5, Quantity: 1, LogMaxEntries: 100_000}
	for line, want := range map[string]calendar.Rule{
		"MONTH":                              {Unit: calendar.Month, From: 1},
		"month fixed zone utc":               {Unit: calendar.Month, From: 1},
		"MONTH FROM 31":                      {Unit: calendar.Month, From: 31},
		"WEEK":                               {Unit: calendar.Week, From: 1},
		"WEEK FROM 7 ZONE europe/berlin":     {Unit: calendar.Week, From: 7, Zone: berlin},
		"DAY":                                {Unit: calendar.Day},
		"DAY ZONE Europe/Berlin FROM 23:59":  {Unit: calendar.Day, From: 1439, Zone: berlin},
		"DAY FROM 00:00":                     {Unit: calendar.Day},
		"YEAR":                               {Unit: calendar.Year, From: 101},
		"YEAR FROM 02-29 ZONE EUROPE/BERLIN": {Unit: calendar.Year, From: 229, Zone: berlin},
	} {
		var c slidingwindow.Call
		require.Empty(t, SlidingWindow(words("k 5 "+line), 100_000, &c, nil), line)
		base.Calendar = want
		require.Equal(t, base, c, line)
		require.Same(t, base.Calendar.Zone, c.Calendar.Zone, "the same zone has one address")
		var ms slidingwindow.Call
		require.Empty(t, SlidingWindow(words("k 5 "+line+" MS"), 100_000, &ms, nil), line)
		require.Equal(t, c.Calendar, ms.Calendar, "MS changes nothing about the windows")
		var room Room
		_, err := room.Parse(words("SW 5 "+line), nil, Options{Unit: time.Second, LogMaxEntries: 100_000, Policy: true})
		require.Empty(t, err)
		require.Equal(t, c, room.Window)
	}
	var c slidingwindow.Call
	require.Empty(t, SlidingWindow(words("k 5 MONTH -3 FORCE FROM 2"), 100_000, &c, nil))
	require.Equal(t, int64(-3), c.Quantity)
	require.Equal(t, uint16(2), c.Calendar.From)
}

func TestCalendarErrors(t *testing.T) {
	for line, want := range map[string]resp.Error{
		"MONTH 1 2":               near("2"),
		"MONTH COUNTER":           near("COUNTER"),
		"MONTH LOG":               near("LOG"),
		"MONTH BUCKETS 5":         near("BUCKETS"),
		"MONTH FIXED FIXED":       near("FIXED"),
		"MONTH EVEN":              near("EVEN"),
		"MONTH ANCHOR 5":          near("ANCHOR"),
		"MONTH ANCHOR FIRST":      near("ANCHOR"),
		"MONTH ZONE":              near("ZONE"),
		"MONTH ZONE UTC ZONE UTC": near("ZONE"),
		"MONTH FROM":              near("FROM"),
		"MONTH FROM 1 FROM 1":     near("FROM"),
		"60 ZONE Europe/Berlin":   near("ZONE"),
		"60 FROM 1":               near("FROM"),
		"MONTHS":                  resp.ErrNotInteger,
		"MONTH ZONE Berlin":       resp.ErrNoZone,
		"MONTH ZONE Europe/":      resp.ErrNoZone,
		"MONTH ZONE local":        resp.ErrNoZone,
		"MONTH ZONE ../UTC":       resp.ErrNoZone,
		"MONTH ZONE /etc/UTC":     resp.ErrNoZone,
		"MONTH ZONE Europe\\Rome": resp.ErrNoZone,
		"MONTH ZONE UTC\x00":      resp.ErrNoZone,
		"MONTH ZONE +01:00":       resp.ErrNoZone,
		"MONTH FIXED BUCKETS 4":   near("BUCKETS"),
		"MONTH FIXED ANCHOR KEY":  near("ANCHOR"),
		"MONTH CALLS":             near("CALLS"),
		"MS MONTH":                resp.ErrNotInteger,
		"MONTH FROM 0":            resp.ErrNoStart,
		"MONTH FROM 32":           resp.ErrNoStart,
		"MONTH FROM 01":           resp.ErrNoStart,
		"MONTH FROM -1":           resp.ErrNoStart,
		"MONTH FROM 257":          resp.ErrNoStart,
		"WEEK FROM 8":             resp.ErrNoStart,
		"WEEK FROM monday":        resp.ErrNoStart,
		"DAY FROM 6":              resp.ErrNoStart,
		"DAY FROM 24:00":          resp.ErrNoStart,
		"DAY FROM 6:00":           resp.ErrNoStart,
		"DAY FROM 7:5":            resp.ErrNoStart,
		"DAY FROM 06-30":          resp.ErrNoStart,
		"DAY FROM 06:60":          resp.ErrNoStart,
		"YEAR FROM 02-30":         resp.ErrNoStart,
		"YEAR FROM 00-01":         resp.ErrNoStart,
		"YEAR FROM 13-01":         resp.ErrNoStart,
		"YEAR FROM 1-1":           resp.ErrNoStart,
	} {
		var c slidingwindow.Call
		require.Equal(t, want, resp.Bare(SlidingWindow(words("k 5 "+line), 100_000, &c, nil)), line)
		require.Zero(t, c)
	}
	var c slidingwindow.Call
	for _, word := range []string{"ZONE", "FROM"} {
		empty := SlidingWindow(append(words("k 5 MONTH "+word), []byte{}), 100_000, &c, nil)
		require.Contains(t, string(empty), "value is no")
		require.Contains(t, string(empty), word+" is ''")
	}
	long := SlidingWindow(words("k 5 MONTH ZONE "+strings.Repeat("Europe/", 50)), 100_000, &c, nil)
	require.Equal(t, resp.ErrNoZone, resp.Bare(long))
	require.Less(t, len(long), 300, "it shows the beginning of the name")
	require.Equal(t, resp.ErrNotPositive, resp.Bare(SlidingWindow(words("k 0 MONTH"), 100_000, &c, nil)))
	var room Room
	_, err := room.Parse(words("SW 0 MONTH CALLS"), nil, Options{Unit: time.Second, Policy: true})
	require.Empty(t, err)
	_, err = room.Parse(words("SW 0 MONTH"), nil, Options{Unit: time.Second})
	require.Contains(t, string(err), "limit is '0', must be at least 1")
	_, err = room.Parse(words("SW 5 MONTH ZONE Berlin"), nil, Options{Unit: time.Second, Policy: true})
	require.Equal(t, "ERR value is no time zone: ZONE is 'Berlin', must be a zone of tzdata "+calendar.Release()+
		" such as Europe/Berlin; usage: "+Usage(Window, true), string(err))
	_, err = room.Parse(words("SW 5 DAY FROM 6"), nil, Options{Unit: time.Second, Policy: true})
	require.Equal(t, "ERR value is no start of a window: FROM is '6', must be a time such as 06:30, from 00:00 to 23:59; usage: "+
		Usage(Window, true), string(err))
}

// TestZonesOfAnotherRelease: only a clause that is stored may have a zone that tzdata does not have. Its name keeps
// its letters, and windows are those of UTC.
func TestZonesOfAnotherRelease(t *testing.T) {
	var room Room
	one := words("SW 5 DAY ZONE Moon/Crater FROM 06:30")
	_, err := room.Parse(one, nil, Options{Unit: time.Second, Policy: true})
	require.Contains(t, string(err), "ERR value is no time zone: ZONE is 'Moon/Crater', must be a zone of tzdata "+calendar.Release())
	_, err = room.Parse(one, nil, Options{Unit: time.Second, Policy: true, AnyZone: true})
	require.Empty(t, err)
	z := room.Window.Calendar.Zone
	require.Equal(t, "Moon/Crater", z.Name())
	require.True(t, z.Missing())
	require.Equal(t, "SW 5 DAY ZONE Moon/Crater FROM 06:30", Text(one))
	start, end := room.Window.Calendar.Window(0)
	require.Equal(t, [2]limit.Instant{-17.5 * 3600e9, 6.5 * 3600e9}, [2]limit.Instant{start, end})
	for _, zone := range []string{"Moon/Cr\xe4ter", strings.Repeat("a", calendar.MaxName+1), "Moon/Crater\x00"} {
		one = append(words("SW 5 DAY ZONE"), []byte(zone))
		_, err = room.Parse(one, nil, Options{Unit: time.Second, Policy: true, AnyZone: true})
		require.Contains(t, string(err), "ERR value is no time zone")
	}
	_, err = room.Parse(words("SW 5 DAY ZONE europe/berlin"), nil, Options{Unit: time.Second, Policy: true, AnyZone: true})
	require.Empty(t, err)
	require.False(t, room.Window.Calendar.Zone.Missing())
	require.Equal(t, "Europe/Berlin", room.Window.Calendar.Zone.Name())
}

func TestText(t *testing.T) {
	require.Equal(t, "SW 5 MONTH ZONE Europe/Berlin FROM 15", Text(words("sw 5 month zone EUROPE/berlin from 15")))
	require.Equal(t, "SW 5 DAY ZONE UTC", Text(words("sw 5 day zone utc")))
	require.Equal(t, "TB 1 2 3 DEBT", Text(words("tb 1 2 3 debt")))
	require.Equal(t, "SW 5 MONTH ZONE Europe/Berlin", WithUnit("SW 5 MONTH ZONE Europe/Berlin", true))
	same, err := InUnit(words("sw 5 day"), time.Second)
	require.Empty(t, err)
	require.Equal(t, words("sw 5 day"), same)
}

// TestZonesAreReadOnce: a zone has one address even if several goroutines name it first, and naming it again
// allocates nothing.
func TestZonesAreReadOnce(t *testing.T) {
	var all [8]*calendar.Zone
	var wait sync.WaitGroup
	for i := range all {
		wait.Go(func() { all[i], _ = zoneOf([]byte("Asia/Tokyo")) })
	}
	wait.Wait()
	for _, z := range all {
		require.Equal(t, "Asia/Tokyo", z.Name())
		require.Same(t, all[0], z)
	}
	line, call := words("k 5 DAY ZONE asia/tokyo FROM 06:30"), slidingwindow.Call{}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if SlidingWindow(line, 1000, &call, nil) != "" {
			panic("refused")
		}
	}))
}

// FuzzAllow: every call that SW.ALLOW accepts can be decided. The text of its clause means the same.
func FuzzAllow(f *testing.F) {
	for _, call := range []string{
		"k 10 60", "k 5 MONTH ZONE Europe/Berlin FROM 31", "k 5 day 3 from 02:30 FIXED ms", "k 1 YEAR FROM 02-29 FORCE",
		"k 5 WEEK FROM 7 BLOCK 1", "k 10 60 BUCKETS 5 EVEN", "k 10 60 ANCHOR KEY LOG", "k 5 DAY ZONE America/Argentina/ComodRivadavia",
	} {
		f.Add([]byte(call))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		args := bytes.Split(line, []byte(" "))
		var call slidingwindow.Call
		if SlidingWindow(args, 1000, &call, nil) != "" {
			return
		}
		require.NoError(t, call.Validate())
		var plan slidingwindow.Plan
		if slidingwindow.Decide(0, nil, 0, 1_700_000_000e9, &call, &plan) == nil && plan.Action == slidingwindow.Store {
			require.NoError(t, slidingwindow.Check(plan.Mode, plan.Apply(nil, nil)))
		}
		var room, again Room
		o := Options{Unit: time.Second, LogMaxEntries: 1000}
		one := append([][]byte{[]byte("SW")}, args[1:]...)
		if _, err := room.Parse(one, nil, o); err != "" {
			return
		}
		_, err := again.Parse(bytes.Split([]byte(Text(one)), []byte(" ")), nil, o)
		require.Empty(t, err)
		require.Equal(t, room, again)
	})
}
