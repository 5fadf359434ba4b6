package limiters_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
)

// TestNotedCallsOfAScriptAreBounded: a script is one batch, however many limiters it calls. What
// RL.TOP and reports remember of them does not grow with their number.
func TestNotedCallsOfAScriptAreBounded(t *testing.T) {
	s, err := inproc.Feed(limit.Instant(1_700_000_000e9))
	require.NoError(t, err)
	defer s.Close()
	heap := func(calls string) int64 {
		reply, err := s.Do("EVAL", "for i = 1, ARGV[1] do redis.call('CL.THROTTLE', KEYS[1], 0, 1, 3600) end return 1", "1", "k", calls)
		require.NoError(t, err)
		require.Equal(t, ":1\r\n", string(reply))
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	few := heap("1000")
	require.Less(t, heap("200000")-few, int64(1<<20))
	reply, err := s.Do("RL.TOP")
	require.NoError(t, err)
	require.Regexp(t, `\$1\r\nk\r\n:20\d{4}\r\n`, string(reply), "all are counted, about")
	runtime.KeepAlive(s)
}
