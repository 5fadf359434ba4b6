package calendar_test

import (
	"crypto/sha256"
	"go/build"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/limit"
	"github.com/stretchr/testify/require"
)

func TestZones(t *testing.T) {
	names := slices.Collect(calendar.Names)
	require.Len(t, names, 598)
	require.True(t, slices.IsSorted(names))
	for _, name := range names {
		require.True(t, calendar.ValidName([]byte(name)), name)
		z, ok := calendar.Load(strings.ToLower(name))
		require.True(t, ok, name)
		if name != "UTC" {
			require.Equal(t, name, z.Name())
		}
	}
	for _, name := range []string{"", "Europe", "Europe/", "Local", "Europe/Berlin ", "../Berlin", "Berlin\x00"} {
		_, ok := calendar.Load(name)
		require.False(t, ok, "%q", name)
	}
	require.Nil(t, calendar.Known(""))
	require.Equal(t, "Moon/Crater", calendar.Known("Moon/Crater").Name())
	require.Equal(t, "europe/berlin", calendar.Known("europe/berlin").Name())
	require.Regexp(t, `^20\d\d[a-z]$`, calendar.Release())
}

// TestTheReleaseIsThatOfGo: if Go's own copy is of the same release, it has the same bytes.
func TestTheReleaseIsThatOfGo(t *testing.T) {
	folder := filepath.Join(build.Default.GOROOT, "lib", "time")
	script, err := os.ReadFile(filepath.Join(folder, "update.bash"))
	if err != nil {
		t.Skip("this Go has no lib/time/update.bash")
	}
	if data := regexp.MustCompile(`(?m)^DATA=(\w+)$`).FindSubmatch(script); data == nil || string(data[1]) != calendar.Release() {
		t.Skip("this Go has another release")
	}
	theirs, err := os.ReadFile(filepath.Join(folder, "zoneinfo.zip"))
	require.NoError(t, err)
	ours, err := os.ReadFile("tzdata.zip")
	require.NoError(t, err)
	require.Equal(t, sha256.Sum256(theirs), sha256.Sum256(ours), "tzdata.zip is not that of Go: run make tzdata")
}

func TestFrom(t *testing.T) {
	for _, row := range []struct {
		unit calendar.Unit
		text string
		from uint16
	}{
		{calendar.Day, "00:00", 0},
		{calendar.Day, "23:59", 1439},
		{calendar.Week, "7", 7},
		{calendar.Month, "31", 31},
		{calendar.Year, "02-29", 229},
		{calendar.Year, "12-31", 1231},
	} {
		from, ok := row.unit.ParseFrom([]byte(row.text))
		require.True(t, ok, row.text)
		require.Equal(t, row.from, from)
		r := calendar.Rule{Unit: row.unit, From: from}
		require.True(t, r.Valid())
		if from != row.unit.First() {
			require.Equal(t, row.unit.String()+" FROM "+row.text, r.String())
		}
	}
	for u := calendar.None; u < 7; u++ {
		for _, text := range []string{"", "0", "8x", "32", "1:00", "01:0a", "04-31", "-1", "+1", "99:99", "0000000000000000000000000001"} {
			_, ok := u.ParseFrom([]byte(text))
			require.False(t, ok, "%v %q", u, text)
		}
		require.Equal(t, u >= calendar.Day && u <= calendar.Year, calendar.ParseUnit([]byte(u.String())) == u && u != 0)
	}
	require.Equal(t, calendar.Month, calendar.ParseUnit([]byte("mOnTh")))
	require.Equal(t, calendar.None, calendar.ParseUnit([]byte("MONTHS")))
}

func at(text string) limit.Instant {
	t, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		panic(err)
	}
	return limit.Instant(t.UnixNano())
}

func TestWindow(t *testing.T) {
	for _, row := range []struct {
		zone string
		unit calendar.Unit
		from uint16
		at   string
		want [2]string // in UTC
	}{
		{"", calendar.Month, 31, "2026-02-27 23:59", [2]string{"2026-01-31 00:00", "2026-02-28 00:00"}},
		{"", calendar.Month, 31, "2026-02-28 00:00", [2]string{"2026-02-28 00:00", "2026-03-31 00:00"}},
		{"", calendar.Month, 30, "2024-02-29 12:00", [2]string{"2024-02-29 00:00", "2024-03-30 00:00"}},
		{"", calendar.Year, 229, "2026-06-01 00:00", [2]string{"2026-02-28 00:00", "2027-02-28 00:00"}},
		{"", calendar.Year, 229, "2028-02-28 23:59", [2]string{"2027-02-28 00:00", "2028-02-29 00:00"}},
		{"", calendar.Week, 1, "2026-11-29 12:00", [2]string{"2026-11-23 00:00", "2026-11-30 00:00"}},
		{"", calendar.Week, 7, "2026-11-29 12:00", [2]string{"2026-11-29 00:00", "2026-12-06 00:00"}},
		{"", calendar.Day, 6 * 60, "1969-12-31 05:00", [2]string{"1969-12-30 06:00", "1969-12-31 06:00"}},
		{"Europe/Berlin", calendar.Month, 1, "2026-03-31 22:30", [2]string{"2026-03-31 22:00", "2026-04-30 22:00"}},
		{"Europe/Berlin", calendar.Day, 150, "2026-03-29 01:00", [2]string{"2026-03-28 01:30", "2026-03-29 01:30"}},
		{"Europe/Berlin", calendar.Day, 150, "2026-10-25 01:00", [2]string{"2026-10-25 00:30", "2026-10-26 01:30"}},
		{"America/Sao_Paulo", calendar.Day, 0, "2018-11-04 12:00", [2]string{"2018-11-04 03:00", "2018-11-05 02:00"}},
		{"Pacific/Apia", calendar.Day, 0, "2011-12-30 09:59", [2]string{"2011-12-29 10:00", "2011-12-30 10:00"}},
		{"Pacific/Apia", calendar.Day, 0, "2011-12-30 10:00", [2]string{"2011-12-30 10:00", "2011-12-31 10:00"}},
		{"Asia/Kathmandu", calendar.Day, 0, "2026-01-01 18:15", [2]string{"2026-01-01 18:15", "2026-01-02 18:15"}},
	} {
		zone, ok := calendar.Load(row.zone)
		require.True(t, ok || row.zone == "")
		r := calendar.Rule{Unit: row.unit, From: row.from, Zone: zone}
		require.True(t, r.Valid())
		start, end := r.Window(at(row.at))
		require.Equal(t, [2]limit.Instant{at(row.want[0]), at(row.want[1])}, [2]limit.Instant{start, end}, "%v at %s", r, row.at)
	}
}

// TestWindowsMeet: of all instants, windows contain theirs, and the next window begins at the end.
func TestWindowsMeet(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	names := slices.Collect(calendar.Names)
	for range 300 {
		zone, _ := calendar.Load(names[random.IntN(len(names))])
		for u := calendar.Day; u <= calendar.Year; u++ {
			r := calendar.Rule{Unit: u, From: u.First() + uint16(random.IntN(6)), Zone: zone}
			require.True(t, r.Valid())
			for range 30 {
				now := limit.Instant(random.Uint64())
				start, end := r.Window(now)
				require.True(t, start <= now && now < end, "%v at %d", r, now)
				require.LessOrEqual(t, end.Sub(start), calendar.Longest)
				if next, _ := r.Window(end); end < limit.MaxInstant {
					require.Equal(t, end, next)
				}
			}
		}
	}
	for _, now := range []limit.Instant{limit.MinInstant, limit.MaxInstant} {
		r := calendar.Rule{Unit: calendar.Year, From: 101}
		start, end := r.Window(now)
		require.True(t, start <= now && now <= end && start < end)
	}
}

func TestWindowAllocatesNothing(t *testing.T) {
	zone, _ := calendar.Load("Europe/Berlin")
	r := calendar.Rule{Unit: calendar.Day, From: 150, Zone: zone}
	now := at("2026-03-28 00:00")
	require.Zero(t, testing.AllocsPerRun(100, func() { _, now = r.Window(now) }))
}

func BenchmarkWindow(b *testing.B) {
	zone, _ := calendar.Load("Europe/Berlin")
	for u := calendar.Day; u <= calendar.Year; u++ {
		r := calendar.Rule{Unit: u, From: u.First(), Zone: zone}
		b.Run(u.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Window(1.79e18)
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		calendar.Load("Europe/Berlin")
	}
}
