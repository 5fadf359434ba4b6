package loglimit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/loglimit"
)

// TestHandlerPassesTheTestsOfSlog: the handler passes slog's own tests.
func TestHandlerPassesTheTestsOfSlog(t *testing.T) {
	var out bytes.Buffer
	now := time.Duration(0)
	h := loglimit.New(func() time.Duration { now += 10 * time.Second; return now }).Handler(slog.NewJSONHandler(&out, nil))
	require.NoError(t, slogtest.TestHandler(h, func() []map[string]any {
		var lines []map[string]any
		for _, line := range bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n")) {
			var m map[string]any
			require.NoError(t, json.Unmarshal(line, &m))
			lines = append(lines, m)
		}
		return lines
	}))
}

// TestLogLinesAreLimitedByKind: ten lines of a kind are written at once and one in ten seconds, for
// each kind separately. The next line says how many were left out, or a line of its own does.
func TestLogLinesAreLimitedByKind(t *testing.T) {
	var out inproc.LogBuffer
	now := time.Duration(0)
	limits := loglimit.New(func() time.Duration { return now })
	log := slog.New(limits.Handler(slog.NewTextHandler(&out, nil)))
	write := func(message string, n int) {
		for range n {
			log.Warn(message) //nolint:sloglint // a kind of the test
		}
	}
	count := func(message string, lines, left int) {
		t.Helper()
		gotLines, gotLeft := out.Lines(message)
		require.Equal(t, []int{lines, left}, []int{gotLines, gotLeft})
	}
	write("one", 100)
	write("two", 3)
	count("one", 10, 0)
	count("two", 3, 0)
	now += 10 * time.Second
	write("one", 5)
	count("one", 11, 90)
	limits.ReportLeftOut(false)
	count("one", 11, 90)
	now += 10 * time.Second
	limits.ReportLeftOut(false)
	count("one", 11, 94)
	write("one", 7)
	limits.ReportLeftOut(true)
	count("one", 11, 101)
	count("two", 3, 0)
	limits.ReportLeftOut(true)
	count("one", 11, 101)

	for i := range 10_000 { // kinds are bounded, too
		log.Warn(fmt.Sprintf("kind %d", i)) //nolint:sloglint // as above
	}
	lines := strings.Count(out.String(), "\n")
	require.Less(t, lines, 400)
	require.NotContains(t, out.String(), "kind 9999")
}
