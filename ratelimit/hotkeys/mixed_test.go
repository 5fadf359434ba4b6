package hotkeys

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/limit"
)

// TestMixed: one call with another limit counts as a changed limit, and further ones as two
// limits.
func TestMixed(t *testing.T) {
	const start limit.Instant = 1_700_000_000_000_000_000
	var m mixed
	note := func(key string, after time.Duration) int64 {
		calls, warn := m.note(0, []byte(key), start.Add(after))
		require.Equal(t, warn, calls > 0)
		return calls
	}
	for i := range 1000 { // a deployment that changes the limits of many keys
		require.Zero(t, note(fmt.Sprint(i), 0))
	}
	require.Len(t, m.keys, maxMixed)
	require.False(t, m.has(0, "999", start))
	require.EqualValues(t, 1001, note("999", time.Second), "the log is told of all calls")
	require.True(t, m.has(0, "999", start.Add(time.Second)))
	require.False(t, m.has(1, "999", start.Add(time.Second)), "another database")
	require.Zero(t, note("999", 60*time.Second))
	require.EqualValues(t, 2, note("999", 61*time.Second), "once a minute")
	require.False(t, m.has(0, "999", start.Add(61*time.Second+mixedFor+1)))
	require.Zero(t, note("999", 2*mixedFor+time.Hour), "it begins anew")
	require.Zero(t, note(string(make([]byte, topKey+1)), 0))
	require.EqualValues(t, 1005, m.calls.Load())
	m.reset()
	require.Zero(t, m.calls.Load())
	require.False(t, m.has(0, "999", start))
}
