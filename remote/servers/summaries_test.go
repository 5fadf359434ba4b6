package servers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/remote/servers"
)

// TestSummaries: a server reads those of the others that are live, until they expire.
func TestSummaries(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const n = 40 // more than one request reads
		d := newDouble()
		ctx, end := context.WithCancel(t.Context())
		lists := make([]*servers.List, n)
		for i := range lists {
			lists[i] = servers.New(servers.Options{Engine: d, ID: fmt.Sprint(i), Own: func() servers.Record { return servers.Record{} }})
			go lists[i].Run(ctx)
		}
		time.Sleep(2 * servers.Period)
		synctest.Wait()
		all, err := lists[0].Summaries(ctx)
		require.NoError(t, err)
		require.Len(t, all, n-1)
		for i := range all {
			require.Nil(t, all[i].Bytes)
			require.NotEmpty(t, all[i].ID)
		}
		want := make([]string, 0, n)
		for i, l := range lists {
			require.NoError(t, l.Publish(ctx, []byte(fmt.Sprint("of ", i))))
			if i != 3 {
				want = append(want, fmt.Sprint("of ", i))
			}
		}
		time.Sleep(servers.SummaryPeriod)
		all, err = lists[3].Summaries(ctx)
		require.NoError(t, err)
		var got []string
		for i := range all {
			got = append(got, string(all[i].Bytes))
			require.Equal(t, "of "+all[i].ID, got[i])
			require.Equal(t, servers.SummaryPeriod, all[i].Age)
			require.False(t, all[i].Late(servers.SummaryPeriod))
			require.True(t, all[i].Late(2*servers.SummaryPeriod))
		}
		require.ElementsMatch(t, want, got)

		d.setAway(true)
		_, err = lists[3].Summaries(ctx)
		require.ErrorContains(t, err, "away")
		require.ErrorContains(t, lists[3].Publish(ctx, nil), "away")
		d.setAway(false)
		time.Sleep(2 * servers.SummaryPeriod)
		synctest.Wait()
		all, err = lists[3].Summaries(ctx)
		require.NoError(t, err)
		require.True(t, all[0].Late(0))
		time.Sleep(3 * servers.SummaryPeriod)
		all, err = lists[3].Summaries(ctx)
		require.NoError(t, err)
		require.Len(t, all, n-1)
		for i := range all {
			require.Nil(t, all[i].Bytes)
		}
		require.Error(t, lists[3].Publish(ctx, make([]byte, servers.MaxSummary+1)))
		end()
		synctest.Wait()
	})
}

// TestSummariesOfOtherPrograms: replies that no script of this package gives are errors, and what is too large is no summary.
func TestSummariesOfOtherPrograms(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		d := newDouble()
		ctx, end := context.WithCancel(t.Context())
		l := servers.New(servers.Options{Engine: d, ID: "me", Own: func() servers.Record { return servers.Record{} }})
		_, err := l.Summaries(ctx)
		require.ErrorContains(t, err, "not known yet")
		go l.Run(ctx)
		d.put("you", `{}`)
		time.Sleep(2 * servers.Period)
		synctest.Wait()
		require.True(t, slices.ContainsFunc(l.Seen(), func(s servers.Server) bool { return s.ID == "you" }))
		for _, bad := range []any{nil, "x", []any{}, []any{int64(1), "1 a"}, []any{"1", int64(1)}, []any{"1"}, []any{"1", "1 a", "1 b"}, []any{"x", "1 a"}, []any{"-1", "1 a"}} {
			d.answer(func() any { return bad })
			_, err := l.Summaries(ctx)
			require.ErrorContains(t, err, "no summaries", "%v", bad)
		}
		for text, want := range map[string]servers.Summary{
			"": {}, "x": {}, "1000": {}, "1000 ": {}, "x y": {}, " y": {}, "-1 y": {}, "99999999999999999999 y": {},
			"1000 " + strings.Repeat("x", servers.MaxSummary+1): {},
			"1000 y z": {Bytes: []byte("y z"), Age: time.Second},
			"3000 y":   {Bytes: []byte("y")}, // the clock was set back
		} {
			d.answer(func() any { return []any{"2000", text} })
			all, err := l.Summaries(ctx)
			require.NoError(t, err)
			want.ID = "you"
			require.Equal(t, []servers.Summary{want}, all, "%.20q", text)
		}
		end()
		d.answer(nil)
		synctest.Wait()
	})
}
