package report_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/report"
	"github.com/cellserver/cellserver/stats"
)

// fleetAnswer returns a report about all servers.
func fleetAnswer[T any](t *testing.T, d *day, name string, given map[string][]string) (is T) {
	t.Helper()
	if given == nil {
		given = map[string][]string{}
	}
	given["fleet"] = []string{"all"}
	q, err := report.ParseQuery(name, given, 16)
	require.NoError(t, err)
	text, err := d.rep.Answer(d.admin, "", q)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &is))
	return is
}

// published returns d as another server knows it, after the round trip of its bytes.
func published(t *testing.T, d *day, name string, age time.Duration) report.Other {
	t.Helper()
	b := d.rep.AppendShare(nil)
	require.LessOrEqual(t, len(b), report.MaxShare)
	s, err := report.ParseShare(b)
	require.NoError(t, err)
	require.Equal(t, b, report.PackShare(s), "a share is read as it was written")
	return report.Other{ID: name, Name: name, Share: s, Age: age}
}

// call is the model of the traffic on a key of a server, each second.
type call struct {
	key           string
	calls, denied int64
}

// world is a fleet of random servers with the same clock, the first of which makes the reports.
type world struct {
	days  []*day
	calls [][]call // of each server
}

func newWorld(t testing.TB, r *rand.Rand, servers, groups, keys, seconds int) *world {
	t.Helper()
	w := &world{}
	for range servers {
		d := newDay(t)
		d.src.denied = &stats.SeenKeys{}
		var all []call
		for g := range groups {
			for k := range keys {
				if r.IntN(3) > 0 {
					c := call{key: fmt.Sprintf("g%d:k%d", g, k), calls: 1 + r.Int64N(50)}
					c.denied = r.Int64N(c.calls + 1)
					all = append(all, c)
				}
			}
		}
		byGroup := map[string]traffic{}
		for _, c := range all {
			name := stats.GroupName([]byte(c.key), ":")
			g := byGroup[name]
			byGroup[name] = traffic{name, g.calls + c.calls, g.denied + c.denied, "99 100 60"}
			seen := stats.SeenKey{Key: c.key, PerSecond: float64(c.denied), First: d.now, Clients: []int64{1, 2, 3, 4}, SeenCall: stats.SeenCall{Command: "cl.throttle", Args: "99 100 60", Limit: 9, RetryAfter: time.Second}}
			if d.src.denied.PerSecond += float64(c.denied); c.denied > 0 {
				d.src.denied.Keys = append(d.src.denied.Keys, seen)
			}
			seen.PerSecond = float64(c.calls)
			d.src.keys.Keys, d.src.keys.PerSecond = append(d.src.keys.Keys, seen), d.src.keys.PerSecond+seen.PerSecond
		}
		for _, keys := range [][]stats.SeenKey{d.src.denied.Keys, d.src.keys.Keys} {
			slices.SortFunc(keys, func(a, b stats.SeenKey) int { return cmp.Compare(b.PerSecond, a.PerSecond) })
		}
		var traffics []traffic
		for _, tr := range byGroup {
			traffics = append(traffics, tr)
		}
		for range seconds {
			d.second(traffics...)
		}
		w.days, w.calls = append(w.days, d), append(w.calls, all)
	}
	return w
}

// TestSumsAreThoseOfTheModel: random servers, some of which are missing or late. The sum is exactly that of the others,
// and what a key lacks is within its bound.
func TestSumsAreThoseOfTheModel(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	lacked := false
	for range 12 {
		servers, groups, keys := 1+r.IntN(5), 1+r.IntN(30), 1+r.IntN(8)
		w := newWorld(t, r, servers, groups, keys, 25)
		one := w.days[0]
		var sum []call
		missing, late := 0, 0
		sum = append(sum, w.calls[0]...)
		for i, d := range w.days[1:] {
			name := fmt.Sprint("s", i)
			switch r.IntN(5) {
			case 0:
				missing++
				one.src.others = append(one.src.others, report.Other{ID: name, Name: name})
			case 1:
				late++
				o := published(t, d, name, 20*time.Second)
				o.Late = true
				one.src.others = append(one.src.others, o)
			default:
				one.src.others = append(one.src.others, published(t, d, name, time.Duration(r.IntN(5000))*time.Millisecond))
				sum = append(sum, w.calls[i+1]...)
			}
		}
		called, denied := map[string]int64{}, map[string]int64{}
		var calls, refused int64
		for _, c := range sum {
			called[c.key], denied[c.key] = called[c.key]+c.calls, denied[c.key]+c.denied
			calls, refused = calls+c.calls, refused+c.denied
		}

		over := fleetAnswer[report.Overview](t, one, "overview", nil)
		require.Equal(t, servers-missing-late, over.Fleet.Servers)
		require.Equal(t, missing, over.Fleet.Missing)
		require.Equal(t, late, over.Fleet.Late)
		require.InDelta(t, calls, over.Fleet.Now.CallsS, 1e-6)
		require.InDelta(t, float64(refused)/float64(max(1, calls)), over.Fleet.Now.DeniedRatio, 1e-4)

		for by, truth := range map[string]map[string]int64{"calls": called, "denied": denied} {
			is := fleetAnswer[report.FleetKeys](t, one, "keys", map[string][]string{"by": {by}, "n": {"1000"}})
			require.Equal(t, over.Fleet.Missing, is.Fleet.Missing)
			for i, k := range is.Keys {
				rate := k.CallsS
				if by == "denied" {
					rate = k.DeniedS
				}
				require.LessOrEqual(t, rate, float64(truth[string(k.Key)])+1e-6, "%s", k.Key)
				if missing+late > 0 {
					require.InDelta(t, -1, k.MissingS, 0, "it is not known what the sum lacks")
				} else {
					require.GreaterOrEqual(t, rate+k.MissingS, float64(truth[string(k.Key)])-1e-6, "%s", k.Key)
					lacked = lacked || rate < float64(truth[string(k.Key)])-1e-6
				}
				require.LessOrEqual(t, len(k.Clients), stats.MaxSeenClients)
				require.Equal(t, "100/min", k.Limit)
				require.Equal(t, stats.GroupName([]byte(k.Key), ":"), string(k.Group))
				if i > 0 && by == "denied" {
					require.LessOrEqual(t, rate, is.Keys[i-1].DeniedS)
				}
			}
		}

		gs := fleetAnswer[report.FleetGroups](t, one, "groups", nil)
		byName, left := map[string]float64{}, 0.0
		for _, c := range sum {
			byName[stats.GroupName([]byte(c.key), ":")] += float64(c.calls)
		}
		for _, g := range gs.Groups {
			left += g.CallsS
			if !g.Rest {
				require.LessOrEqual(t, g.CallsS, byName[string(g.Group)]+1e-6)
				if g.Servers == gs.Fleet.Servers {
					require.InDelta(t, byName[string(g.Group)], g.CallsS, 1e-6, "%s", g.Group)
				}
			}
		}
		require.InDelta(t, calls, left, 1e-6, "what a server has left out is in the rest")

		h := fleetAnswer[report.History](t, one, "history", map[string][]string{"span": {"1h"}})
		require.NotNil(t, h.Fleet)
		require.EqualValues(t, 10, h.Step)
		whole := 0
		for i := range h.Allowed {
			all := h.Allowed[i] + h.Denied[i]
			require.LessOrEqual(t, all, 10*calls)
			if all == 10*calls {
				require.Equal(t, 10*refused, h.Denied[i])
				whole++
			}
		}
		require.Positive(t, whole, "some step has all of it: %v", h)
	}
	require.True(t, lacked, "some worlds leave keys out")
}

// TestHistoryOfAllServersEndsWithTheOldestShare: the newest steps would lack what a server has not published yet. Servers
// whose clocks differ are added by the age of their shares.
func TestHistoryOfAllServersEndsWithTheOldestShare(t *testing.T) {
	one, two := newDay(t), newDay(t)
	two.now = two.now.Add(1234567 * time.Second) // the clock of the other
	for _, d := range []*day{one, two} {
		for range 3000 {
			d.second(traffic{"api", 100, 10, "99 100 60"})
		}
	}
	one.src.others = []report.Other{published(t, two, "two", 13*time.Second)}
	for _, row := range []struct {
		span string
		step int64
	}{{"5m", 10}, {"1h", 10}, {"6h", 240}, {"24h", 240}} {
		h := fleetAnswer[report.History](t, one, "history", map[string][]string{"span": {row.span}})
		require.Equal(t, row.step, h.Step)
		n := len(h.Allowed)
		require.Len(t, h.Denied, n)
		require.Len(t, h.P99us, n)
		end := h.From + int64(n)*h.Step*1000
		now := int64(one.now) / 1e6
		require.LessOrEqual(t, end, now-13_000+h.Step*500, "half a step is how far steps of servers may lie apart")
		require.Greater(t, end, now-13_000-2*h.Step*1000)
		require.Equal(t, 2*90*row.step, h.Allowed[n-1], "the last step has the calls of both")
		require.Equal(t, 2*10*row.step, h.Denied[n/2])
	}
}

// TestReportsWithoutOthers: without a store they are those of this server, and while the store is away they say so.
func TestReportsWithoutOthers(t *testing.T) {
	d := newDay(t)
	for range 30 {
		d.second(traffic{"api", 100, 10, "99 100 60"})
	}
	is := fleetAnswer[report.FleetGroups](t, d, "groups", nil)
	require.Equal(t, report.Fleet{Servers: 1, Now: is.Fleet.Now}, is.Fleet)
	own := d.rep.Groups()
	require.Len(t, is.Groups, len(own))
	is.Groups[0].Servers = 0
	require.Equal(t, own[0], is.Groups[0])
	require.NotContains(t, d.src.waits, false)

	d.src.others, d.src.othersErr = []report.Other{{ID: "a", Name: "a"}}, errors.New("the store is away")
	over := fleetAnswer[report.Overview](t, d, "overview", nil)
	require.Equal(t, "the store is away", over.Fleet.Error)
	require.Equal(t, 1, over.Fleet.Missing)
	d.src.waits = nil
	q, err := report.ParseQuery("overview", map[string][]string{"fleet": {"known"}}, 16)
	require.NoError(t, err)
	_, err = d.rep.Answer(d.admin, "", q)
	require.NoError(t, err)
	require.Equal(t, []bool{false}, d.src.waits)
	_, err = report.ParseQuery("overview", map[string][]string{"fleet": {"some"}}, 16)
	require.Error(t, err)
	_, err = report.ParseQuery("changes", map[string][]string{"fleet": {"all"}}, 16)
	require.Error(t, err)
}

// TestSharesAreBounded: however many groups, keys and calls there are, and however long the names.
func TestSharesAreBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	d := newDay(t)
	var all []traffic
	for i := range 202 {
		all = append(all, traffic{fmt.Sprintf("%03d%s", i, strings.Repeat("g", 61)), 1 << 20, 1 << 19, strings.Repeat("9", 48)})
	}
	for i := range 512 {
		d.src.keys.Keys = append(d.src.keys.Keys, stats.SeenKey{
			DB: math.MaxInt32, Key: fmt.Sprintf("%d%s", i, strings.Repeat("k", r.IntN(1020))), PerSecond: float64(1000 - i), Clients: []int64{1, 2, 3},
			SeenCall: stats.SeenCall{Command: "cl.throttle", Args: strings.Repeat("a", 48), Limit: 48}, First: limit.Instant(1),
		})
	}
	for i := range 3700 {
		d.sample.Failed += 1 << 27
		d.sample.Calls += 1 << 27
		if i < 3690 {
			d.second()
			continue
		}
		d.second(all...)
	}
	o := published(t, d, "other", 0)
	require.NotNil(t, o.Share)
	require.Greater(t, len(d.rep.AppendShare(nil)), report.MaxShare/3)
}

// TestHostileShares: bytes that are no share give an error.
func TestHostileShares(t *testing.T) {
	w := newWorld(t, rand.New(rand.NewPCG(1, 1)), 1, 3, 3, 20)
	b := w.days[0].rep.AppendShare(nil)
	for n := range b {
		_, err := report.ParseShare(b[:n])
		require.Error(t, err, "%d bytes", n)
	}
	_, err := report.ParseShare(append(b[:len(b):len(b)], "of a later release"...))
	require.NoError(t, err)
	b[0]++
	_, err = report.ParseShare(b)
	require.Error(t, err, "another level")
	_, err = report.ParseShare([]byte{1, 3, 1, '"', 0})
	require.Error(t, err, "a verdict of other characters")
}

// FuzzParseShare: bytes of another server never make a report fail.
func FuzzParseShare(f *testing.F) {
	w := newWorld(f, rand.New(rand.NewPCG(1, 1)), 1, 3, 3, 20)
	f.Add(w.days[0].rep.AppendShare(nil))
	f.Add([]byte{1, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := report.ParseShare(b)
		if err != nil {
			return
		}
		again, err := report.ParseShare(report.PackShare(s))
		require.NoError(t, err)
		require.Equal(t, s, again)
		d := newDay(t)
		d.second(traffic{"api", 10, 1, "99 100 60"})
		for range 3 {
			d.src.others = append(d.src.others, report.Other{ID: "x", Name: "x", Share: s})
		}
		for _, name := range []string{"overview", "history", "keys", "groups"} {
			fleetAnswer[any](t, d, name, nil)
		}
	})
}

// TestKeysOfOtherServersAreReadByTheirRules: a user sees no key that it may not read, wherever it was called.
func TestKeysOfOtherServersAreReadByTheirRules(t *testing.T) {
	other := newDay(t)
	other.src.keys = seenKeys("secret:bank", "app:1")
	other.second(traffic{"api", 10, 1, "99 100 60"})
	src := &source{others: []report.Other{published(t, other, "two:1", time.Second)}}
	ask := apiOf(t, src)
	for _, path := range []string{"overview", "keys", "groups", "history"} {
		body := ask("GET", "/api/v1/"+path+"?fleet=all", "", "app").Body.String()
		require.NotContains(t, body, "bank", path)
		require.Contains(t, body, `"servers":2`, path)
	}
	body := ask("GET", "/api/v1/keys?fleet=all&by=calls&group=app", "", "app").Body.String()
	require.Contains(t, body, `"key":"app:1"`)
	require.Contains(t, body, `"name":"orders","user":"app","lib":"","addr":"","server":"two:1"`)
	require.Contains(t, ask("GET", "/api/v1/keys?fleet=all", "", "admin").Body.String(), "secret:bank")
}
