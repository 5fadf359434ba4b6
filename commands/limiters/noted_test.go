package limiters_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
)

// TestNotedCallsOfAScriptAreBounded: a script is one batch, however many limiters it calls. The
// memory for RL.TOP and reports does not grow with the number of its calls.
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

// TestNotedKeysOfPoliciesOutlastAScript: the noted keys of a call stay intact until its batch
// ends, although a later script of the batch uses other keys.
func TestNotedKeysOfPoliciesOutlastAScript(t *testing.T) {
	s, err := inproc.Feed(limit.Instant(1_700_000_000e9))
	require.NoError(t, err)
	defer s.Close()
	do := func(words ...string) string {
		reply, err := s.Do(words...)
		require.NoError(t, err)
		return string(reply)
	}
	require.Equal(t, "+OK\r\n", do("RL.POLICY", "SET", "p", "LIMITS", "TB", "1", "1", "3600", "SW", "1", "3600"))
	require.Equal(t, "+OK\r\n", do("RL.POLICY", "SET", "other", "LIMITS", "TB", "9999", "1", "3600", "SW", "9999", "3600"))
	require.Contains(t, do("RL.USE", "p", "busy"), ":0\r\n:1\r\n:0\r\n")
	denied := inproc.Encode(nil, "RL.USE", "p", "busy")
	_, err = s.Send(inproc.Encode(denied, "EVAL", "return redis.call('RL.USE', 'other', 'innocent')", "1", "other:innocent"))
	require.NoError(t, err)
	top := do("RL.TOP")
	require.Contains(t, top, "$6\r\np:busy\r\n")
	require.Contains(t, top, "$8\r\np:busy#2\r\n")
	require.NotContains(t, top, "other", "a key that was never denied")
}
