package decide_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// TestForeign: a call detects that its key has the usage of another limit. Another number of units
// is not another limit, and a window that is over does not count.
func TestForeign(t *testing.T) {
	const now limit.Instant = 1_700_000_040_000_000_000
	window := func(most int64, length time.Duration, mode slidingwindow.Mode) decide.Ask {
		return decide.Ask{Family: decide.Window, Window: slidingwindow.Call{Limit: most, Window: length, Mode: mode, Quantity: 1}}
	}
	bucket := func(capacity int64, interval time.Duration, mode tokenbucket.Mode) decide.Ask {
		return decide.Ask{Family: decide.Bucket, Bucket: tokenbucket.Call{
			Capacity: capacity, Init: capacity, Count: 1, Period: interval, Interval: interval, Mode: mode, Quantity: 1,
		}}
	}
	looks := window(5, 2*time.Minute, slidingwindow.Fixed)
	looks.Window.Quantity = 0
	first := window(5, time.Minute, slidingwindow.Fixed)
	first.Window.First = true
	for name, c := range map[string]struct {
		before, is decide.Ask
		after      time.Duration
		want       int
	}{
		"the same":           {window(5, time.Minute, slidingwindow.Fixed), window(5, time.Minute, slidingwindow.Fixed), 0, 0},
		"another limit":      {window(5, time.Minute, slidingwindow.Fixed), window(9, time.Minute, slidingwindow.Fixed), 0, 0},
		"an anchor of none":  {window(5, time.Minute, slidingwindow.Fixed), first, 0, 0},
		"another window":     {window(5, time.Minute, slidingwindow.Fixed), window(5, time.Hour, slidingwindow.Fixed), 0, 1},
		"another mode":       {window(5, time.Minute, slidingwindow.Counter), window(5, time.Minute, slidingwindow.Log), 0, 1},
		"of a log":           {window(5, time.Minute, slidingwindow.Log), window(5, time.Hour, slidingwindow.Log), 0, 1},
		"a look":             {window(5, time.Minute, slidingwindow.Fixed), looks, 0, 0},
		"the next window":    {window(5, time.Minute, slidingwindow.Counter), window(5, time.Minute, slidingwindow.Counter), 61 * time.Second, 0},
		"the same bucket":    {bucket(5, time.Second, tokenbucket.Greedy), bucket(9, time.Second, tokenbucket.Greedy), 0, 0},
		"another rate":       {bucket(5, time.Second, tokenbucket.Greedy), bucket(5, time.Minute, tokenbucket.Greedy), 0, 1},
		"another batch":      {bucket(5, time.Second, tokenbucket.Interval), bucket(5, time.Minute, tokenbucket.Interval), 0, 1},
		"another bucket":     {bucket(5, time.Second, tokenbucket.Greedy), bucket(5, time.Second, tokenbucket.Leaky), 0, 1},
		"the same old batch": {bucket(5, time.Second, tokenbucket.Interval), bucket(5, time.Second, tokenbucket.Interval), 0, 0},
	} {
		var p decide.Plan
		require.NoError(t, p.One(&entry.Entry{}, now, &c.before), name)
		require.Zero(t, c.before.Foreign, "%s: a new key", name)
		e := entry.Entry{Kind: p.Kind, Expiry: p.Expiry, Value: p.Apply(nil, nil)}
		require.NoError(t, p.One(&e, now.Add(c.after), &c.is), name)
		require.Equal(t, c.want, c.is.Foreign, name)

		several := decide.Ask{Family: decide.Several, Details: make([]limit.Decision, 2), Clauses: []decide.Clause{
			{Window: &slidingwindow.Call{Limit: 1, Window: time.Minute, Mode: slidingwindow.Fixed, Quantity: 1}}, {},
		}}
		if c.is.Family == decide.Window {
			several.Clauses[1].Window = &c.is.Window
		} else {
			several.Clauses[1].Bucket = &c.is.Bucket
		}
		var rounds decide.Rounds
		require.NoError(t, rounds.All(&several, now.Add(c.after), func(i int) *entry.Entry {
			if i == 0 {
				return &entry.Entry{}
			}
			return &e
		}))
		require.Equal(t, 2*c.want, several.Foreign, name)
	}
}
