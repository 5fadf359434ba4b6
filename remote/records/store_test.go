package records_test

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/internal/remotedouble"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/remote/engine"
	"github.com/cellserver/cellserver/remote/records"
)

// pair returns two servers of one engine, whose m may be replaced.
func pair(t *testing.T) (a, b *server, m **remotedouble.Records) {
	t.Helper()
	is := remotedouble.NewRecords()
	m = &is
	rng := rand.New(rand.NewPCG(5, 5))
	a, b = newServer(m, &[]func(){}, rng), newServer(m, &[]func(){}, rng)
	for _, s := range []*server{a, b} {
		require.NoError(t, s.Load(t.Context()))
	}
	return a, b, m
}

func follow(t *testing.T, s *server) (changed bool) {
	t.Helper()
	changed, err := s.Follow(t.Context())
	require.NoError(t, err)
	return changed
}

func TestChangesReachOtherServers(t *testing.T) {
	a, b, m := pair(t)
	require.Equal(t, records.Version{}, a.Version())
	require.False(t, follow(t, b))
	require.NoError(t, a.write("k", "1", "l", "1"))
	require.EqualValues(t, 1, a.Version().Number)
	require.Equal(t, 1, a.all, "its own change is not observed")
	require.True(t, follow(t, b))
	require.Equal(t, map[string]string{"k": "1", "l": "1"}, b.records)
	require.Equal(t, a.Version(), b.Version())
	require.NoError(t, b.write("k", "", "l", "2"))
	require.True(t, follow(t, a))
	require.Equal(t, map[string]string{"l": "2"}, a.records)
	require.Equal(t, 1, a.all, "two changes need no reload")

	calls := a.calls
	(*m).Now += int64(time.Second)
	require.False(t, follow(t, a))
	require.Equal(t, calls+1, a.calls, "one round trip")
	require.EqualValues(t, (*m).Now/1000*1000, a.LastFollowed())
	require.Equal(t, time.Minute, a.Age(a.LastFollowed()+limit.Instant(time.Minute)))
	require.Zero(t, a.Age(a.LastFollowed()-1))
	require.Equal(t, a.Civil(7), a.FromCivil(7))
}

func TestStoreIsUnavailableBeforeItWasRead(t *testing.T) {
	is := remotedouble.NewRecords()
	s := newServer(&is, &[]func(){}, rand.New(rand.NewPCG(5, 5)))
	var unavailable decide.Unavailable
	require.ErrorAs(t, s.set("k", "1"), &unavailable)
	require.EqualValues(t, 1<<63-1, s.Age(1))
	s.next = []fate{lost}
	err := s.write("k", "1")
	require.ErrorAs(t, err, &unavailable, "the error of Refresh")
	require.ErrorContains(t, err, "timeout")
	require.NoError(t, s.write("k", "1"))
	require.Error(t, s.set("k"))
	require.NoError(t, s.SetStrings(nil, registry.Spare))
}

func TestChangeAtAnOlderVersionIsStale(t *testing.T) {
	a, b, _ := pair(t)
	_, _ = a.Refresh()
	require.NoError(t, b.write("k", "1"))
	require.ErrorIs(t, a.set("k", "2"), registry.ErrStale)
	require.True(t, follow(t, a), "another goroutine observes the change")
	calls := a.calls
	require.ErrorIs(t, a.set("k", "2"), registry.ErrStale, "the plan is still older than the records")
	require.Equal(t, calls, a.calls)
	require.NoError(t, a.write("k", "2"))
	require.NoError(t, a.set("k", "3"), "a second change after one Refresh")
}

// stale is the text of [registry.ErrStale].
var stale = registry.ErrStale.Error()

// TestLostReplies has the reply to a change be lost in all ways.
func TestLostReplies(t *testing.T) {
	for name, test := range map[string]struct {
		fates []fate
		other bool // another server writes after the first try
		want  string
		made  bool
	}{
		"refused":                             {[]fate{refused}, false, "starting", false},
		"done":                                {[]fate{done}, false, "", true},
		"lost, then written":                  {[]fate{lost}, false, "", true},
		"lost twice, then written":            {[]fate{lost, lost}, false, "", true},
		"never written":                       {[]fate{lost, lost, lost}, false, "in force or not", false},
		"done, and never said":                {[]fate{done, lost, lost}, false, "in force or not", true},
		"done, then refused":                  {[]fate{done, refused, refused}, false, "in force or not", true},
		"done, and another follows":           {[]fate{done}, true, "", true},
		"done, another follows, ids are lost": {[]fate{done, answered, lost, lost}, true, "", true},
		"done, another follows, never said":   {[]fate{done, answered, lost, lost, lost}, true, "in force or not", true},
		"lost, and another is first":          {[]fate{lost}, true, stale, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, m := pair(t)
			require.NoError(t, a.write("k", "0"))
			_, _ = a.Refresh()
			first := a.calls
			a.link.before = func() {
				if test.other && a.calls == first+2 {
					require.NoError(t, b.write("other", "1"))
				}
			}
			a.next = test.fates
			err := a.set("k", "1")
			a.link.before = nil
			if test.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.want)
			}
			if test.want == stale {
				require.ErrorIs(t, err, registry.ErrStale)
			}
			require.Equal(t, test.made, (*m).All()["k"] == "1")
			for _, s := range []*server{a, b} {
				follow(t, s)
				require.Equal(t, (*m).All(), s.records)
			}
		})
	}
}

// TestLateChangeIsObserved: a change in doubt is done after the server has given up.
func TestLateChangeIsObserved(t *testing.T) {
	a, b, _ := pair(t)
	_, _ = a.Refresh()
	a.next = []fate{delayed, delayed, lost}
	require.ErrorContains(t, a.set("k", "1"), "in force or not")
	require.False(t, follow(t, a))
	for _, f := range *a.late {
		f()
	}
	require.True(t, follow(t, a))
	require.Equal(t, map[string]string{"k": "1"}, a.records)
	require.EqualValues(t, 1, a.Version().Number, "it is done once")

	_, _ = a.Refresh()
	*a.late = nil
	a.next = []fate{delayed, lost, lost}
	require.Error(t, a.set("k", "2"))
	require.NoError(t, b.write("k", "3"))
	(*a.late)[0]()
	follow(t, a)
	require.Equal(t, map[string]string{"k": "3"}, a.records, "too late to be done")
}

func TestLongChangesAreReadWhole(t *testing.T) {
	a, b, _ := pair(t)
	require.NoError(t, a.write("k", strings.Repeat("x", 256<<10)))
	require.True(t, follow(t, b))
	require.Equal(t, 2, b.all)
	require.Equal(t, a.records, b.records)
	require.Zero(t, b.Lost())
	require.NoError(t, a.write("k", strings.Repeat("x", 256<<10-1)))
	require.True(t, follow(t, b))
	require.Equal(t, 2, b.all)
	require.Equal(t, a.records, b.records)

	a.MostBytes(10)
	calls := a.calls
	require.ErrorIs(t, a.set("k", "0123456789"), records.ErrTooLarge)
	require.Equal(t, calls, a.calls)
	require.NoError(t, a.set("k", "012345678"))
}

func TestFollowContinuesInSeveralSteps(t *testing.T) {
	a, b, _ := pair(t)
	for i := range 300 {
		require.NoError(t, a.write("k", strings.Repeat("x", 1+i)))
	}
	calls := b.calls
	require.True(t, follow(t, b))
	require.Equal(t, calls+3, b.calls, "128 changes a step")
	require.Equal(t, 1, b.all)
	require.Equal(t, a.Version(), b.Version())
}

func TestTrimmedLogIsReadWhole(t *testing.T) {
	a, b, m := pair(t)
	for _, s := range []*server{a, b} {
		s.Small(4, 1000, 100, 2)
	}
	for i := range 4 {
		require.NoError(t, a.write("k", strings.Repeat("x", 1+i)))
	}
	follow(t, b)
	require.Equal(t, 1, b.all)
	for i := range 5 {
		require.NoError(t, a.write("k", strings.Repeat("y", 1+i)))
		require.Len(t, (*m).Hashes[log], 4)
	}
	follow(t, b)
	require.Equal(t, 2, b.all)
	require.Equal(t, a.records, b.records)
	require.Zero(t, b.Lost(), "what the log no longer has is not lost")
}

func TestLostChangesAreCounted(t *testing.T) {
	a, b, m := pair(t)
	require.NoError(t, a.write("k", "1"))
	before := (*m).Clone()
	for range 3 {
		require.NoError(t, a.write("k", "2"))
	}
	follow(t, b)
	var text bytes.Buffer
	c := records.New(records.Options{
		Engine: a.link, Observer: a.table, Now: func() limit.Instant { return 1 }, Log: slog.New(slog.NewTextHandler(&text, nil)),
	})
	require.NoError(t, c.Load(t.Context()))

	*m = before
	d := newServer(m, &[]func(){}, rand.New(rand.NewPCG(6, 6)))
	require.NoError(t, d.Load(t.Context()))
	require.NoError(t, d.write("k", "3")) // the numbers are counted again
	for _, s := range []*server{a, b} {
		require.True(t, follow(t, s))
		require.EqualValues(t, 3, s.Lost())
		require.Equal(t, map[string]string{"k": "3"}, s.records)
		require.False(t, follow(t, s))
		require.EqualValues(t, 3, s.Lost())
	}
	_, err := c.Follow(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, c.Lost(), "it has seen only the last of them")
	require.Contains(t, text.String(), "the store has lost changes of policies")
	require.Contains(t, text.String(), "changes=1")
	require.Zero(t, d.Lost())

	*m = remotedouble.NewRecords() // everything is lost
	require.True(t, follow(t, d))
	require.Empty(t, d.records)
	require.EqualValues(t, 2, d.Lost())
	require.Equal(t, records.Version{}, d.Version())
}

func TestVersionsAreForgotten(t *testing.T) {
	a, _, _ := pair(t)
	for range 3000 {
		require.NoError(t, a.write("k", "1"))
	}
	require.Less(t, a.Known(), 2048)
	require.GreaterOrEqual(t, a.Known(), 1024)
}

func TestDeletedKeysAreThoseThatWereObserved(t *testing.T) {
	a, b, m := pair(t)
	require.NoError(t, a.write("k", "1", "l", "1"))
	follow(t, b)
	_, err := a.Refresh()
	require.NoError(t, err)
	require.NoError(t, a.Delete([]byte("k")))
	require.Equal(t, map[string]string{"l": "1"}, (*m).All())
	require.NoError(t, b.write("l", "2"))
	require.ErrorIs(t, a.Delete([]byte("l")), registry.ErrStale)
	require.True(t, follow(t, a))
	require.ErrorIs(t, a.Delete([]byte("l")), registry.ErrStale, "the registry may not know its value")
	require.Equal(t, map[string]string{"l": "2"}, (*m).All())
	require.True(t, a.Removes())
}

func TestDamagedRecordsAreToldOf(t *testing.T) {
	a, b, m := pair(t)
	require.NoError(t, a.write("k", "1"))
	require.NoError(t, a.write("l", "1"))
	for _, text := range []string{"", "x", (*m).Hashes[log]["2"] + "1:"} {
		(*m).Hashes[log]["2"] = text
		c := newServer(m, &[]func(){}, rand.New(rand.NewPCG(7, 7)))
		require.NoError(t, c.Load(t.Context()))
		require.Equal(t, a.records, c.records, "the log is not needed")
	}
	follow(t, b)
	require.Equal(t, 2, b.all, "a change that cannot be read means that all is read")
	require.Equal(t, a.records, b.records)

	(*m).Strings[head] = "gibberish"
	_, err := b.Follow(t.Context())
	require.ErrorContains(t, err, "{policies}:head")
	var unavailable decide.Unavailable
	require.ErrorAs(t, b.write("k", "2"), &unavailable)
	require.ErrorContains(t, unavailable, "{policies}:head")
}

// odd is an engine that returns one reply to each script.
type odd struct{ reply any }

func (o odd) Eval(context.Context, string, []string, []string) (any, error) { return o.reply, nil }

func (o odd) Confirm(context.Context, string, []string, []string, time.Duration) (engine.Confirmed, error) {
	return engine.Confirmed{Reply: o.reply}, nil
}

func (odd) Listen(context.Context, string, func(error)) {}

func TestRepliesOfNoScript(t *testing.T) {
	for _, reply := range []any{
		nil, int64(1), "",
		[]any{},
		[]any{"", "1", "1"},
		[]any{"", "1", "1", "ok"},
		[]any{"1 0000000000000001", "1", "1", "ok"},
		[]any{"", "1", "0", "ok", "v"},
		[]any{"", "1", "1", "reload"},
	} {
		s := records.New(records.Options{Engine: odd{reply}, Observer: &table{}, Now: func() limit.Instant { return 1 }})
		require.Error(t, s.Load(t.Context()), "%v", reply)
	}
}

// TestAChangeTakesThreeRoundTrips: a change of one entry follows the changes of others, is written, and waits for a replica.
// Another server takes it over in one round trip, however many records there are.
func TestAChangeTakesThreeRoundTrips(t *testing.T) {
	a, b, m := pair(t)
	many := make([]string, 0, 2000)
	for i := range 1000 {
		many = append(many, "k"+strconv.Itoa(i), "1")
	}
	require.NoError(t, b.write(many...))
	(*m).Replicas.Set(1, false)
	calls := a.calls
	c := a.Changing()
	_, err := c.Refresh()
	require.NoError(t, err)
	require.NoError(t, c.SetStrings([][]byte{[]byte("k7"), []byte("2")}, registry.Spare))
	require.Equal(t, calls+2, a.calls)
	require.NoError(t, c.Confirm())
	require.Equal(t, calls+3, a.calls)

	calls, all := b.calls, b.all
	require.True(t, follow(t, b))
	require.Equal(t, calls+1, b.calls)
	require.Equal(t, all, b.all, "it does not read all records")
	require.Equal(t, "2", b.records["k7"])
}
