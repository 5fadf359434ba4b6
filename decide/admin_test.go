package decide_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

var (
	none    = entry.Entry{}
	aCell   = entry.Entry{Kind: entry.Cell, Expiry: tatAt}
	forever = entry.Entry{Kind: entry.Cell, Expiry: entry.NoExpiry, Value: gcra.AppendState(nil, tatAt)}
	text    = entry.Entry{Kind: entry.String, Expiry: entry.NoExpiry, Value: []byte("text")}
	later   = start.Add(time.Hour)
	fixed   = entry.OfWindow(slidingwindow.Fixed)
)

func TestKeys(t *testing.T) {
	aWindow := entry.Entry{Kind: fixed, Expiry: tatAt}
	for _, c := range []struct {
		name   string
		e      entry.Entry
		call   decide.AdminCall
		want   decide.AdminResult
		action decide.Action
		frees  bool
		err    error
	}{
		{"EXISTS", aCell, decide.AdminCall{Op: decide.Exists}, decide.AdminResult{Found: true}, decide.Keep, false, nil},
		{"EXISTS without a key", none, decide.AdminCall{Op: decide.Exists}, decide.AdminResult{}, decide.Keep, false, nil},
		{"DEL", aCell, decide.AdminCall{Op: decide.Delete}, decide.AdminResult{Found: true, Done: true}, decide.Remove, true, nil},
		{"DEL without a key", none, decide.AdminCall{Op: decide.Delete}, decide.AdminResult{}, decide.Keep, false, nil},
		{"TTL", aCell, decide.AdminCall{Op: decide.Expiry}, decide.AdminResult{Found: true, Expiry: tatAt, HasExpiry: true}, decide.Keep, false, nil},
		{"TTL of what never expires", forever, decide.AdminCall{Op: decide.Expiry}, decide.AdminResult{Found: true}, decide.Keep, false, nil},
		{"TTL without a key", none, decide.AdminCall{Op: decide.Expiry}, decide.AdminResult{}, decide.Keep, false, nil},
		{"EXPIRE later", aCell, decide.AdminCall{Op: decide.Expire, At: later}, decide.AdminResult{Found: true, Done: true}, decide.Store, false, nil},
		{"EXPIRE earlier", aWindow, decide.AdminCall{Op: decide.Expire, At: start + 1}, decide.AdminResult{Found: true, Done: true}, decide.Store, true, nil},
		{"EXPIRE at once", aCell, decide.AdminCall{Op: decide.Expire, At: start}, decide.AdminResult{Found: true, Done: true}, decide.Remove, true, nil},
		{"EXPIRE without a key", none, decide.AdminCall{Op: decide.Expire, At: later}, decide.AdminResult{}, decide.Keep, false, nil},
		{"EXPIRE that may not", aCell, decide.AdminCall{Op: decide.Expire, At: later, Condition: decide.ExpireIfNone}, decide.AdminResult{Found: true}, decide.Keep, false, nil},
		{"PERSIST", aCell, decide.AdminCall{Op: decide.Persist}, decide.AdminResult{Found: true, Done: true}, decide.Store, false, nil},
		{"PERSIST of what never expires", forever, decide.AdminCall{Op: decide.Persist}, decide.AdminResult{Found: true}, decide.Keep, false, nil},
		{"PERSIST without a key", none, decide.AdminCall{Op: decide.Persist}, decide.AdminResult{}, decide.Keep, false, nil},
		{"TYPE", aWindow, decide.AdminCall{Op: decide.Type}, decide.AdminResult{Found: true, Text: "ratelimit"}, decide.Keep, false, nil},
		{"TYPE without a key", none, decide.AdminCall{Op: decide.Type}, decide.AdminResult{Text: "none"}, decide.Keep, false, nil},
		{"GET of a cell", aCell, decide.AdminCall{Op: decide.Text}, decide.AdminResult{Found: true, Text: "1700000002000000000"}, decide.Keep, false, nil},
		{"GET of a string", text, decide.AdminCall{Op: decide.Text}, decide.AdminResult{Found: true, Text: "text"}, decide.Keep, false, nil},
		{"GET of a window", aWindow, decide.AdminCall{Op: decide.Text}, decide.AdminResult{Found: true}, decide.Keep, false, limit.ErrWrongType},
		{"GET without a key", none, decide.AdminCall{Op: decide.Text}, decide.AdminResult{}, decide.Keep, false, nil},
		{"RL.INFO without a key", none, decide.AdminCall{Op: decide.Describe}, decide.AdminResult{}, decide.Keep, false, nil},
		{"RL.INFO of another kind", aCell, decide.AdminCall{Op: decide.Describe, By: &slidingwindow.Call{Limit: 1}}, decide.AdminResult{Found: true}, decide.Keep, false, limit.ErrWrongType},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, a := key{e: c.e}, admin(c.call)
			require.ErrorIs(t, k.ask(t, start, a), c.err)
			require.Equal(t, c.want, a.Result)
			require.Equal(t, c.action, k.plan.Action)
			require.Equal(t, c.frees, c.action != decide.Keep && k.plan.Frees)
			if c.action == decide.Store {
				require.Equal(t, c.e.Kind, k.e.Kind)
			}
		})
	}
}

// TestCellKeepsItsTATUnderAnotherExpiry: a cell stores its TAT in its value when its expiry is not
// the TAT.
func TestCellKeepsItsTATUnderAnotherExpiry(t *testing.T) {
	k := key{e: aCell}
	for _, c := range []struct {
		call decide.AdminCall
		want limit.Instant
	}{
		{decide.AdminCall{Op: decide.Expire, At: later}, later},
		{decide.AdminCall{Op: decide.Persist}, entry.NoExpiry},
		{decide.AdminCall{Op: decide.Expire, At: limit.MaxInstant}, entry.NoExpiry - 1},
		{decide.AdminCall{Op: decide.Expire, At: tatAt}, tatAt},
	} {
		require.NoError(t, k.ask(t, start, admin(c.call)))
		require.Equal(t, c.want, k.e.Expiry)
		require.Equal(t, tatAt, entry.CellTAT(&k.e))
		require.Equal(t, c.want == tatAt, len(k.e.Value) == 0)
	}
}

func TestExpireKeepsTheValueOfALimiter(t *testing.T) {
	k := key{}
	require.NoError(t, k.ask(t, start, window(slidingwindow.Fixed, 2)))
	was := k.e
	require.NoError(t, k.ask(t, start, admin(decide.AdminCall{Op: decide.Expire, At: later})))
	was.Expiry = later
	require.Equal(t, was, k.e)
}

func TestExpireConditions(t *testing.T) {
	at := func(s int) limit.Instant { return start.Add(time.Duration(s) * time.Second) }
	for _, c := range []struct {
		name    string
		old, to limit.Instant
		cond    decide.ExpireCondition
		want    decide.Action
	}{
		{"none", at(10), at(20), 0, decide.Store},
		{"NX on a key that expires", at(10), at(20), decide.ExpireIfNone, decide.Keep},
		{"NX on one that does not", entry.NoExpiry, at(20), decide.ExpireIfNone, decide.Store},
		{"XX on a key that expires", at(10), at(20), decide.ExpireIfAny, decide.Store},
		{"XX on one that does not", entry.NoExpiry, at(20), decide.ExpireIfAny, decide.Keep},
		{"GT later", at(10), at(20), decide.ExpireIfLater, decide.Store},
		{"GT the same", at(10), at(10), decide.ExpireIfLater, decide.Keep},
		{"GT than never", entry.NoExpiry, at(20), decide.ExpireIfLater, decide.Keep},
		{"LT earlier", at(10), at(9), decide.ExpireIfEarlier, decide.Store},
		{"LT at once", at(10), at(0), decide.ExpireIfEarlier, decide.Remove},
		{"LT later", at(10), at(11), decide.ExpireIfEarlier, decide.Keep},
		{"LT than never", entry.NoExpiry, at(20), decide.ExpireIfEarlier, decide.Store},
		{"XX GT", entry.NoExpiry, at(20), decide.ExpireIfAny | decide.ExpireIfLater, decide.Keep},
	} {
		_, got := decide.Reschedule(&entry.Entry{Kind: fixed, Expiry: c.old}, start, c.to, c.cond)
		require.Equal(t, c.want, got, c.name)
	}
}

func TestFieldsOfEveryKind(t *testing.T) {
	q := quota(t)
	said := func(e *entry.Entry, by any) (names []string, fields map[string]any) {
		k, a := key{e: *e}, admin(decide.AdminCall{Op: decide.Describe, By: by})
		require.NoError(t, k.ask(t, start, a))
		require.True(t, a.Result.Found)
		fields = map[string]any{}
		for _, f := range a.Result.Fields {
			names = append(names, f.Name)
			if fields[f.Name] = f.Number; f.IsText {
				fields[f.Name] = f.Text
			}
		}
		return names, fields
	}
	names, fields := said(&aCell, nil)
	require.Equal(t, []string{"type", "mode", "tat-ns", "debt-ns", "reset-ms", "missing", "expire-at"}, names)
	require.Equal(t, int64(2000), fields["reset-ms"])
	require.Equal(t, int64(tatAt)/1e6, fields["expire-at"])
	_, fields = said(&forever, &q)
	require.Equal(t, int64(4), fields["remaining"])
	require.Equal(t, int64(-1), fields["expire-at"])
	_, fields = said(&text, nil)
	require.Equal(t, map[string]any{"type": "string", "mode": "embstr", "length": int64(4), "expire-at": int64(-1)}, fields)
	names, _ = said(&entry.Entry{Kind: entry.Hash, Expiry: entry.NoExpiry}, nil)
	require.Equal(t, []string{"type", "expire-at"}, names, "the rest is for who can read it")

	for name, ask := range limiters(t) {
		if name == "cell" {
			continue
		}
		k := key{}
		require.NoError(t, k.ask(t, start, ask(1)))
		_, fields = said(&k.e, nil)
		require.Equal(t, "ratelimit", fields["type"])
		require.Equal(t, k.e.Kind.Encoding(), fields["mode"])
		if !k.e.Kind.IsBucket() { // some of these know their capacity
			require.Equal(t, "limit", fields["missing"], name)
		}
		var by any = &slidingwindow.Call{Limit: 5}
		switch {
		case k.e.Kind.IsBucket():
			by = &tokenbucket.Call{Capacity: 5}
		case k.e.Kind.IsLease():
			by = &concurrency.Call{Limit: 5}
		}
		_, fields = said(&k.e, by)
		require.Equal(t, int64(5), fields["limit"], name)
		require.Contains(t, fields, "remaining")
		require.NotContains(t, fields, "missing")

		for _, by := range []any{&q, &slidingwindow.Call{Limit: 5}, &tokenbucket.Call{Capacity: 5}, &concurrency.Call{Limit: 5}} {
			err := decide.Tell(&k.e, start, by, func(string, string, int64, bool) {})
			if err != nil {
				require.ErrorIs(t, err, limit.ErrWrongType)
			}
		}
	}
	for _, by := range []any{&slidingwindow.Call{Limit: 5}, &tokenbucket.Call{Capacity: 5}, &concurrency.Call{Limit: 5}} {
		require.ErrorIs(t, decide.Tell(&aCell, start, by, nil), limit.ErrWrongType)
	}
}
