package slidingwindow_test

import (
	"archive/zip"
	"io"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
)

// calendars are the rules of random calls. Clocks of the zones show half hours when those of UTC do.
var calendars = []calendar.Rule{
	{Unit: calendar.Month, From: 1},
	{Unit: calendar.Month, From: 31, Zone: zone("Europe/Berlin")},
	{Unit: calendar.Day, From: 2*60 + 30, Zone: zone("Europe/Berlin")},
	{Unit: calendar.Day, From: 30, Zone: zone("America/Havana")},
	{Unit: calendar.Day, From: 2 * 60, Zone: zone("Australia/Lord_Howe")},
	{Unit: calendar.Week, From: 7, Zone: zone("America/Sao_Paulo")},
	{Unit: calendar.Year, From: 229, Zone: zone("Asia/Kolkata")},
}

func zone(name string) *calendar.Zone {
	z, ok := calendar.Load(name)
	if !ok {
		panic(name)
	}
	return z
}

// boundaries are the instants at which windows of a rule begin, in ascending order, from 2016 to 2100.
type boundaries []limit.Instant

// window returns the index of the window that contains at.
func (b boundaries) window(at limit.Instant) int {
	i, found := slices.BinarySearch(b, at)
	if !found {
		i--
	}
	return i
}

// end returns the end of the window that contains at.
func (b boundaries) end(at limit.Instant) limit.Instant { return b[b.window(at)+1] }

var (
	walks   = map[calendar.Rule]boundaries{}
	walking sync.Mutex
)

// walked returns the boundaries of r. It finds them by looking at a clock of the zone every half hour.
func walked(r calendar.Rule) boundaries {
	walking.Lock()
	defer walking.Unlock()
	if walks[r] == nil {
		walks[r] = walk(r)
	}
	return walks[r]
}

func walk(r calendar.Rule) (b boundaries) {
	const step = 30 * time.Minute
	clock := wall(r.Zone.Name())
	seen := time.Time{} // the latest local time that the clock has shown, as a time of UTC
	for now := time.Date(2016, 1, 1, 0, 0, 0, 0, time.UTC); now.Year() < 2100; now = now.Add(step) {
		local := now.In(clock)
		shown := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), 0, 0, time.UTC)
		if seen.IsZero() {
			seen = shown.Add(-step)
		}
		// The clock shows one new time, or none after it was put back, or has left some out.
		for i := 0; seen.Before(shown); i++ {
			if seen = seen.Add(step); begins(&r, seen) {
				b = append(b, limit.Instant(now.Add(time.Duration(i)*step).UnixNano()))
			}
		}
	}
	slices.Sort(b)
	return b
}

// begins reports whether a window of r begins when a clock shows local.
func begins(r *calendar.Rule, local time.Time) bool {
	day := local.Day() == int(r.From)
	last := local.AddDate(0, 0, 1).Day() == 1
	midnight := local.Hour() == 0 && local.Minute() == 0
	switch r.Unit {
	case calendar.Day:
		return local.Hour()*60+local.Minute() == int(r.From)
	case calendar.Week:
		return midnight && (int(local.Weekday())+6)%7 == int(r.From)-1
	case calendar.Month:
		return midnight && (day || last && local.Day() < int(r.From))
	}
	day = local.Day() == int(r.From%100)
	return midnight && int(local.Month()) == int(r.From/100) && (day || last && local.Day() < int(r.From%100))
}

// wall returns the rules of a zone by way of archive/zip.
func wall(name string) *time.Location {
	if name == "" {
		return time.UTC
	}
	archive, err := zip.OpenReader("../calendar/tzdata.zip")
	must(err)
	defer func() { must(archive.Close()) }()
	f, err := archive.Open(name)
	must(err)
	data, err := io.ReadAll(f)
	must(err)
	l, err := time.LoadLocationFromTZData(name, data)
	must(err)
	return l
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// calendarModel counts units by window of a calendar.
type calendarModel struct {
	rule     calendar.Rule
	byWindow counts
}

func (m *calendarModel) window(at *big.Int) *big.Int {
	return num(int64(walked(m.rule).window(limit.Instant(at.Int64()))))
}

func (m *calendarModel) used(at *big.Int) *big.Int    { return m.charged(at) }
func (m *calendarModel) slotUsed(*big.Int) *big.Int   { return zero }
func (m *calendarModel) charged(at *big.Int) *big.Int { return m.byWindow.get(m.window(at)) }

func (m *calendarModel) add(at, n *big.Int) {
	k := m.window(at)
	m.byWindow[k.Int64()] = plus(m.byWindow.get(k), n)
}

func (m *calendarModel) refund(at, n *big.Int) { m.byWindow.take(m.window(at), n) }

func (m *calendarModel) fits(_ *big.Int, c *slidingwindow.Call) bool {
	return c.Mode == slidingwindow.Calendar && c.Calendar == m.rule
}
