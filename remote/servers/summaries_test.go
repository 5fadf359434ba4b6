package servers_test

import (
	"bytes"
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
		require.Equal(t, make([][]byte, n-1), all)
		want := make([]string, 0, n)
		for i, l := range lists {
			require.NoError(t, l.Publish(ctx, []byte(fmt.Sprint("of ", i))))
			if i != 3 {
				want = append(want, fmt.Sprint("of ", i))
			}
		}
		all, err = lists[3].Summaries(ctx)
		require.NoError(t, err)
		got := strings.Split(string(bytes.Join(all, []byte("|"))), "|")
		require.ElementsMatch(t, want, got)

		d.setAway(true)
		_, err = lists[3].Summaries(ctx)
		require.ErrorContains(t, err, "away")
		require.ErrorContains(t, lists[3].Publish(ctx, nil), "away")
		d.setAway(false)
		time.Sleep(3 * servers.SummaryPeriod)
		all, err = lists[3].Summaries(ctx)
		require.NoError(t, err)
		require.Equal(t, make([][]byte, n-1), all)
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
		go l.Run(ctx)
		d.put("you", `{}`)
		time.Sleep(2 * servers.Period)
		synctest.Wait()
		require.True(t, slices.ContainsFunc(l.Seen(), func(s servers.Server) bool { return s.ID == "you" }))
		for _, bad := range []any{nil, "x", []any{}, []any{int64(1)}, []any{"a", "b"}} {
			d.answer(func() any { return bad })
			_, err := l.Summaries(ctx)
			require.ErrorContains(t, err, "no summaries", "%v", bad)
		}
		d.answer(func() any { return []any{strings.Repeat("x", servers.MaxSummary+1)} })
		all, err := l.Summaries(ctx)
		require.NoError(t, err)
		require.Equal(t, [][]byte{nil}, all)
		end()
		d.answer(nil)
		synctest.Wait()
	})
}
