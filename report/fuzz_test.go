package report_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/report"
)

// FuzzQuery: the parameters of each accepted query, by RL.REPORT or the admin port, are within
// their bounds. A refused query gets a sentence whose length does not depend on the query.
func FuzzQuery(f *testing.F) {
	f.Add("history", "span=6h")
	f.Fuzz(func(t *testing.T, name, query string) {
		given, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		q, err := report.ParseQuery(name, given, 16)
		if err != nil {
			require.NotEmpty(t, err.Error())
			require.Less(t, len(err.Error()), 600)
			return
		}
		require.True(t, q.Span >= 1 && q.Span <= report.MaxSpan, q.Span)
		require.True(t, q.N >= 1 && q.N <= 1000, q.N)
		require.True(t, q.DB >= 0 && q.DB < 16, q.DB)
		require.GreaterOrEqual(t, q.Since, int64(0))
		require.LessOrEqual(t, max(len(q.Key), len(q.Group)), 16<<10)
	})
}

// FuzzKey: a key survives JSON, whatever its bytes are, and JSON that is not a key is an error.
func FuzzKey(f *testing.F) {
	f.Add([]byte("api:acme"))
	f.Fuzz(func(t *testing.T, b []byte) {
		text, err := json.Marshal(report.Key(b))
		require.NoError(t, err)
		var k report.Key
		require.NoError(t, json.Unmarshal(text, &k), "%s", text)
		require.Equal(t, report.Key(b), k)
		k = "before"
		if json.Unmarshal(b, &k) != nil {
			require.Equal(t, report.Key("before"), k)
		}
	})
}

// FuzzHistory: for any samples, with any time between them, resets and counters that decrease, the
// lists of each span have the same length, no negative count, and no more than was counted.
func FuzzHistory(f *testing.F) {
	f.Add([]byte{1, 10, 2, 0, 1, 20, 4, 0}, int64(60))
	f.Fuzz(func(t *testing.T, b []byte, span int64) {
		d := newDay(t)
		most := int64(0)
		for ; len(b) >= 4 && len(d.sample.Groups) < 100; b = b[4:] {
			d.now = d.now.Add(time.Duration(b[0]) * time.Duration(b[3]|1) * 100 * time.Millisecond)
			d.sample.At, d.sample.Civil = d.now, int64(d.now)/1e6
			if b[3] > 200 {
				d.sample.Resets++
				d.sample.Calls, d.sample.Denied = 0, 0
			}
			d.sample.Calls += int64(b[1])
			d.sample.Denied = min(d.sample.Calls, d.sample.Denied+int64(b[2]))
			most += int64(b[1])
			d.sample.Groups = []report.GroupSample{{Name: strings.Repeat("g", int(b[1]%3)), Calls: d.sample.Calls, Denied: d.sample.Denied}}
			d.rec.Add(d.sample)
		}
		h := d.rep.History(nil, span)
		require.Len(t, h.Denied, len(h.Allowed))
		require.Len(t, h.P50us, len(h.Allowed))
		require.Len(t, h.P99us, len(h.Allowed))
		require.LessOrEqual(t, len(h.Allowed), 722)
		sum := int64(0)
		for i := range h.Allowed {
			require.GreaterOrEqual(t, min(h.Allowed[i], h.Denied[i]), int64(0))
			sum += h.Allowed[i] + h.Denied[i]
		}
		require.LessOrEqual(t, sum, most)
		text, err := json.Marshal(d.rep.Overview(d.admin))
		require.NoError(t, err)
		require.True(t, json.Valid(text))
		d.rep.Groups()
	})
}
