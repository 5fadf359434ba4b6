package report_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/report"
	"github.com/cellserver/cellserver/stats"
)

// day feeds a recorder with seconds of traffic.
type day struct {
	rec     *report.Recorder
	src     *source
	rep     *report.Reporter
	admin   *acl.User
	now     limit.Instant
	sample  report.Sample
	changes []string
}

func newDay(t testing.TB) *day {
	t.Helper()
	table := commands.NewTable()
	users := acl.NewUsers(table)
	d := &day{now: limit.Instant(1_700_000_000e9), src: &source{table: table}, admin: users.Default}
	d.rec = report.NewRecorder(d.now, func(kind, text, group string) {
		d.src.changes.Add(stats.Change{At: int64(d.now) / 1e6, Kind: kind, Text: text, Group: group})
		d.changes = append(d.changes, text)
	})
	d.rep = report.New(d.rec, d.src)
	return d
}

// traffic describes the calls of a group in a second.
type traffic struct {
	group         string
	calls, denied int64
	args          string
}

func (d *day) second(all ...traffic) {
	d.now = d.now.Add(time.Second)
	d.sample.At, d.sample.Civil = d.now, int64(d.now)/1e6
	d.sample.Seen = nil
	groups := append([]report.GroupSample(nil), d.sample.Groups...)
	for _, tr := range all {
		d.sample.Calls, d.sample.Denied = d.sample.Calls+tr.calls, d.sample.Denied+tr.denied
		at := -1
		for i := range groups {
			if groups[i].Name == tr.group {
				at = i
			}
		}
		if at < 0 {
			at, groups = len(groups), append(groups, report.GroupSample{Name: tr.group})
		}
		groups[at].Calls, groups[at].Denied = groups[at].Calls+tr.calls, groups[at].Denied+tr.denied
		seen := stats.SeenGroup{Name: tr.group, Calls: []stats.SeenCalls{{SeenCall: stats.SeenCall{Command: "cl.throttle", Args: tr.args, Limit: len(tr.args)}, Count: tr.calls / 16 * 16}}}
		for range min(tr.denied, 300) {
			seen.Denied.Add(rand.Uint64())
		}
		d.sample.Seen = append(d.sample.Seen, seen)
	}
	d.sample.Groups = groups
	d.rec.Add(d.sample)
}

// TestErrorsAreCalls: calls with an error reply are shown in addition to decided ones, and the most
// frequent error is known.
func TestErrorsAreCalls(t *testing.T) {
	d := newDay(t)
	for i := range int64(30) {
		d.sample.Calls, d.sample.Failed = d.sample.Calls+7, d.sample.Failed+7
		d.sample.Codes = map[string]int64{"ERR": i, "NOREPLICAS": 7 * i}
		d.second(traffic{"api", 3, 1, "99 100 60"})
	}
	h := d.rep.History(nil, 10)
	last := len(h.Errors) - 1
	require.Len(t, h.Errors, len(h.Allowed))
	require.Equal(t, []int64{2, 1, 7}, []int64{h.Allowed[last], h.Denied[last], h.Errors[last]})
	o := d.rep.Overview(d.admin)
	require.InDelta(t, 10, o.Now.CallsS, 0.01)
	require.InDelta(t, 0.1, o.Now.DeniedRatio, 0.001)
	require.InDelta(t, 0.7, o.Now.ErrorRatio, 0.001)
	require.Equal(t, report.Errors, o.Verdict.Kind)
	require.Contains(t, o.Verdict.Text, "70 % of the calls are answered with an error, most with -NOREPLICAS.")
}

// TestReservationsOfFiveMinutes: the overview counts what has happened to reservations, and repetitions, in the last
// five minutes, without what has not happened. A reset of the counters changes nothing.
func TestReservationsOfFiveMinutes(t *testing.T) {
	d := newDay(t)
	total := func(repeats, made, late int64) {
		d.sample.Repeats, d.sample.Reservations = repeats, []report.Count{{"made", made}, {"committed", 0}, {"late", late}}
		d.second()
	}
	total(0, 0, 0)
	text, err := json.Marshal(d.rep.Overview(d.admin).Now)
	require.NoError(t, err)
	require.NotContains(t, string(text), "reservations")
	require.NotContains(t, string(text), "repeats")
	total(2, 10, 0)
	total(3, 25, 1)
	now := d.rep.Overview(d.admin).Now
	require.Equal(t, []report.Count{{"made", 25}, {"late", 1}}, now.Reservations)
	require.EqualValues(t, 3, now.Repeats)

	d.sample.Resets++
	d.sample.Calls, d.sample.Denied = 0, 0
	total(1, 4, 0)
	now = d.rep.Overview(d.admin).Now
	require.Equal(t, []report.Count{{"made", 29}, {"late", 1}}, now.Reservations)
	require.EqualValues(t, 4, now.Repeats)

	for range 298 {
		d.second()
	}
	require.Equal(t, []report.Count{{"made", 19}, {"late", 1}}, d.rep.Overview(d.admin).Now.Reservations, "the first ten are older")
	for range 2 {
		d.second()
	}
	now = d.rep.Overview(d.admin).Now
	require.Empty(t, now.Reservations)
	require.Zero(t, now.Repeats)
}

// TestVerdictStays: under a constant load at the bound of a verdict, the verdict does not change
// with each sample.
func TestVerdictStays(t *testing.T) {
	d := newDay(t)
	rng := rand.New(rand.NewPCG(1, 2))
	flips, kind := 0, ""
	for i := range 300 {
		n := 40 + rng.Int64N(21) // half of the calls, about
		d.sample.Calls, d.sample.Failed = d.sample.Calls+n, d.sample.Failed+n
		d.second(traffic{"api", 100 - n, 0, "99 100 60"})
		if v := d.rep.Overview(d.admin).Verdict; i > 10 && v.Kind != kind {
			kind = v.Kind
			flips++
		}
	}
	require.Equal(t, report.Errors, kind)
	require.LessOrEqual(t, flips, 2, "what it was at first, and what it became")
}

func TestHistoryIsWhatHappened(t *testing.T) {
	d := newDay(t)
	for i := range int64(7300) {
		d.second(traffic{"api", 100 + i%10, i % 10, "99 100 60"})
	}
	for span, steps := range map[int64]int{60: 61, 300: 301, 3600: 361, 7200: 121, 24 * 3600: 61} {
		h := d.rep.History(nil, span)
		require.InDelta(t, steps, len(h.Allowed), 2, "span %d", span)
		require.Len(t, h.Denied, len(h.Allowed))
		require.Len(t, h.P99us, len(h.Allowed))
		require.Equal(t, 100*h.Step, h.Allowed[len(h.Allowed)/2], "span %d", span)
		end := h.From + int64(len(h.Allowed))*h.Step*1000
		require.InDelta(t, int64(d.now)/1e6, end, float64(h.Step*1000))
	}
	g := d.rep.Groups()
	require.Len(t, g, 1)
	require.InDelta(t, 104.5, g[0].CallsS, 1)
	require.InDelta(t, 0.043, g[0].Spark[30], 0.002)
	require.Equal(t, "100/min", g[0].Limit)
}

// TestHistoryTakesMissedSecondsAndResets: counts between two samples are distributed over the
// seconds, and counters that are reset do not look like a flood.
func TestHistoryTakesMissedSecondsAndResets(t *testing.T) {
	d := newDay(t)
	d.second(traffic{"api", 100, 0, "99 100 60"})
	d.now = d.now.Add(4 * time.Second)
	d.second(traffic{"api", 500, 50, "99 100 60"})
	h := d.rep.History(nil, 10)
	require.Equal(t, []int64{90, 90, 90, 90, 90}, h.Allowed[len(h.Allowed)-5:])
	d.sample.Calls, d.sample.Denied, d.sample.Groups, d.sample.Resets = 0, 0, nil, 1
	d.second(traffic{"api", 7, 0, "99 100 60"})
	h = d.rep.History(nil, 10)
	require.EqualValues(t, 7, h.Allowed[len(h.Allowed)-1])
}

// TestUsualIsWhatWasBeforeAnIncident: however long an incident lasts, the usual values are those
// from before it, unless they are older than most of the history.
func TestUsualIsWhatWasBeforeAnIncident(t *testing.T) {
	type part struct {
		minutes int
		denied  int64 // of 100 calls
	}
	for _, row := range []struct {
		name  string
		parts []part
		usual float64
	}{
		{"nothing is usual at once", []part{{9, 2}}, -1},
		{"after ten minutes", []part{{11, 2}}, 0.02},
		{"a start with few denials, since no key has used up its limit", []part{{1, 0}, {10, 40}}, 0.4},
		{"an incident of minutes", []part{{11, 2}, {10, 60}}, 0.02},
		{"one as long as all before", []part{{30, 2}, {30, 60}}, 0.02},
		{"one of an hour", []part{{15, 2}, {60, 60}}, 0.02},
		{"one of twelve hours after a day", []part{{24 * 60, 2}, {12 * 60, 60}}, 0.02},
		{"one of a day and a half is usual by then", []part{{24 * 60, 2}, {36 * 60, 60}}, 0.6},
		{"an incident at the start", []part{{10, 60}, {120, 2}}, 0.02},
		{"a quiet night", []part{{12 * 60, 30}, {8 * 60, 0}, {60, 30}}, 0.3},
		{"nobody calls", []part{{60, -1}}, -1},
		{"nobody calls any more", []part{{60, 2}, {120, -1}}, 0.02},
	} {
		d := newDay(t)
		d.sample.At, d.sample.Civil = d.now, int64(d.now)/1e6
		for _, p := range row.parts {
			for range p.minutes * 6 { // a sample every ten seconds is sufficient
				d.now = d.now.Add(10 * time.Second)
				d.sample.At, d.sample.Civil = d.now, int64(d.now)/1e6
				if p.denied >= 0 {
					d.sample.Calls, d.sample.Denied = d.sample.Calls+1000, d.sample.Denied+10*p.denied
				}
				d.rec.Add(d.sample)
			}
		}
		o := d.rep.Overview(d.admin)
		require.InDelta(t, row.usual, o.Now.UsualRatio, 1e-9, row.name)
		if last := row.parts[len(row.parts)-1]; last.denied == 60 && row.usual == 0.02 {
			require.Equal(t, report.Denials, o.Verdict.Kind, row.name)
		}
	}
}

// TestResetsOfCountersHideNothing: after CONFIG RESETSTAT counters are small, whether or not they
// grow beyond their earlier values. Nothing is lost or counted twice.
func TestResetsOfCountersHideNothing(t *testing.T) {
	d := newDay(t)
	add := func(calls, denied, errors int64) {
		d.now = d.now.Add(time.Second)
		d.sample.At, d.sample.Civil = d.now, int64(d.now)/1e6
		d.sample.Calls, d.sample.Denied, d.sample.Errors = calls, denied, errors
		d.sample.Groups = []report.GroupSample{{Name: "api", Calls: calls, Denied: denied}}
		d.rec.Add(d.sample)
	}
	add(0, 0, 0)
	add(10, 5, 3)
	add(20, 10, 6)
	d.sample.Resets++
	add(18, 9, 1) // nearly as many as before
	d.sample.Resets++
	add(30, 0, 40) // and more
	add(29, 0, 40) // one was withdrawn
	add(31, 0, 40)
	h := d.rep.History(nil, 10)
	require.Equal(t, []int64{0, 5, 5, 9, 30, 0, 1}, h.Allowed[len(h.Allowed)-7:])
	require.Equal(t, []int64{0, 5, 5, 9, 0, 0, 0}, h.Denied[len(h.Denied)-7:])
	o := d.rep.Overview(d.admin)
	require.InDelta(t, 69./6, o.Now.CallsS, 1e-9)
	for _, c := range o.Checks {
		if c.ID == report.CheckErrors {
			require.InDelta(t, 47./6, c.Value, 1e-9)
			require.Equal(t, "7.8/s", c.Text)
		}
	}
	require.InDelta(t, 69./6, d.rep.Groups()[0].CallsS, 1e-9)
}

// TestFewAnswersAreNoAlarm: slow replies among very few mean nothing, and the check shows no value
// beyond its bound.
func TestFewAnswersAreNoAlarm(t *testing.T) {
	d := newDay(t)
	check := func(took time.Duration, calls int64) report.Check {
		var h stats.Histogram
		h.Add(took, calls)
		d.now = d.now.Add(time.Second)
		d.sample.At, d.sample.Civil, d.sample.Answers = d.now, int64(d.now)/1e6, new(stats.Distribution)
		d.sample.Answers.Add(&h)
		d.sample.Resets++
		d.rec.Add(d.sample)
		return d.rep.Overview(d.admin).Checks[0]
	}
	c := check(23*time.Millisecond, 7)
	require.True(t, c.OK)
	require.Zero(t, c.Value)
	require.Equal(t, "7 answers, too few to tell", c.Text)
	c = check(23*time.Millisecond, 200)
	require.False(t, c.OK)
	require.Regexp(t, `^p99 2\d\.\d ms$`, c.Text)
	c = check(40*time.Microsecond, 200)
	require.True(t, c.OK)
	require.Regexp(t, `^p99 4\d µs$`, c.Text)
	require.Regexp(t, `^p99 0\.\d µs$`, check(600*time.Nanosecond, 200).Text)
}

// TestHistoryTakesTwoMebibytes: the maximum number of groups over a day.
func TestHistoryTakesTwoMebibytes(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	d := newDay(t)
	all := make([]traffic, 250)
	for i := range all {
		all[i] = traffic{fmt.Sprintf("group%d", i), 320, 10, "99 100 60"}
	}
	for range 700 {
		d.second(all...)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("%d KiB", (after.HeapAlloc-before.HeapAlloc)>>10)
	require.Less(t, after.HeapAlloc-before.HeapAlloc, uint64(2<<20))
	require.Len(t, d.rep.Groups(), 202)
	runtime.KeepAlive(d)
}

// TestLimitChangesAreSeenInCalls: if most calls have another limit, that is one change. Groups with
// several limits at the same time have none.
func TestLimitChangesAreSeenInCalls(t *testing.T) {
	d := newDay(t)
	for range 60 {
		d.second(traffic{"calls", 1000, 0, "99 100 60"})
	}
	for range 60 {
		d.second(traffic{"calls", 1000, 600, "9 10 60"})
	}
	require.Equal(t, []string{"Limit of group calls changed in calls: 10/min, was 100/min"}, d.changes)
	v := d.rep.Overview(d.admin).Verdict
	require.Equal(t, report.Limit, v.Kind, v.Text)
	require.Equal(t, "The limiter works. All keys in calls: 10/min, was 100/min.", v.Title)
	require.Equal(t, "A", v.Mark)
}

// TestAnUnevenHealthyDayRaisesNoAlarm: over whole days of virtual time, whose load depends on the
// hour, has bursts and short periods of a few callers over their limit, the verdict every ten
// seconds is that the limiter works.
func TestAnUnevenHealthyDayRaisesNoAlarm(t *testing.T) {
	for seed := range uint64(effort.Steps(1, 3)) {
		r := rand.New(rand.NewPCG(seed, 1))
		d := newDay(t)
		d.sample.MaxMemory, d.sample.Memory = 1<<30, 300<<20
		burst, burstEnds, denials := 1.0, 0, 0.0
		for s := range 24 * 3600 {
			hour := 1 + 0.8*math.Sin(float64(s)/86400*2*math.Pi)
			if s >= burstEnds {
				burst, denials = 1, 0.01*r.Float64()
				if r.IntN(600) == 0 {
					burst, denials, burstEnds = 1+2*r.Float64(), 0.08*r.Float64(), s+5+r.IntN(60)
				}
			}
			load := func(base float64) int64 { return int64(base * hour * burst * (0.8 + 0.4*r.Float64())) }
			api, login := load(4000), load(300)
			large := int64(float64(api) * (0.35 + 0.3*r.Float64())) // two tiers of customers with about equal shares
			d.second(traffic{"api", api - large, int64(float64(api) * denials), "99 100 60"}, traffic{"api", large, 0, "999 1000 60"},
				traffic{"login", login, login / 60, "4 5 60"})
			d.src.keys = stats.SeenKeys{PerSecond: float64(api)*denials + float64(login)/60, Keys: []stats.SeenKey{{
				Key: "login:203.0.113.77", PerSecond: float64(login) / 120, First: d.now.Add(-time.Hour), Last: d.now,
				SeenCall: stats.SeenCall{Command: "cl.throttle", Args: "59 60 1", Limit: 7},
			}}}
			if s%10 == 9 {
				v := d.rep.Overview(d.admin).Verdict
				require.Equal(t, report.Healthy, v.Kind, "second %d of day %d: %s %s", s, seed, v.Title, v.Text)
			}
		}
	}
}
