package stats_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/stats"
)

// TestMonitorShowsScriptsOfManyCallsInBoundedMemory: commands of a script that are too many to be
// shown are counted.
func TestMonitorShowsScriptsOfManyCallsInBoundedMemory(t *testing.T) {
	var l stats.Lines
	for range 200_000 {
		l.Add(stats.Source{Addr: "lua"}, stats.Words([][]byte{[]byte("GET"), []byte(strings.Repeat("k", 100))}))
	}
	require.LessOrEqual(t, l.Size(), 9<<20)
	text := string(l.Take(1_000_001))
	require.Regexp(t, `\+1\.000001 \[0 monitor\] \.\.\. \(\d+ more commands\)\r\n$`, text)
	require.Zero(t, l.Size())

	long := stats.Words([][]byte{make([]byte, 10<<20), []byte("x")})
	require.Less(t, len(long), 300<<10)
	require.Contains(t, string(long), "... (10420224 more bytes) ... (1 more arguments)")
}
