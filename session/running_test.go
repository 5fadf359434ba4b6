package session_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestRunningIsTheScriptThatKeepsOthersWaiting: Running returns the script's client, digest and
// duration, and whether it is busy.
func TestRunningIsTheScriptThatKeepsOthersWaiting(t *testing.T) {
	s := inproc.Step(t, "--busy-reply-threshold", "500")
	e := s.Engine()
	_, is := e.Running()
	require.False(t, is)
	c, other := s.Dial(), s.Dial()
	id := c.ID()
	c.Command("EVAL", "while true do end", "0")
	s.Clock.AwaitTimers(1)
	r, is := e.Running()
	require.True(t, is)
	require.Equal(t, id, fmt.Sprint(r.Client.ID))
	require.Equal(t, "694a5fe1ddb97a4c6a1bf299d9537c7d3d0f84e7", r.Script)
	require.False(t, r.Busy)
	s.Clock.Advance(501 * time.Millisecond)
	r, is = e.Running()
	require.True(t, is)
	require.True(t, r.Busy, "others are told")
	require.Positive(t, r.For)
	require.Equal(t, inproc.OK, other.Do("SCRIPT", "KILL"))
	require.Contains(t, c.Reply(), "-ERR")
	// The reply may leave before the world is started, so the next command waits for that.
	require.Equal(t, ":0\r\n", other.Do("EXISTS", "k"))
	_, is = e.Running()
	require.False(t, is)
}

// TestAScriptThatBlocksAllOtherCallsIsLogged: the log has one line about a busy script, with its
// digest and client.
func TestAScriptThatBlocksAllOtherCallsIsLogged(t *testing.T) {
	s := inproc.Step(t, "--busy-reply-threshold", "1")
	c, other := s.Dial(), s.Dial()
	id := c.ID()
	c.Command("EVAL", "while true do end", "0")
	s.Clock.AwaitTimers(1)
	s.Clock.Advance(time.Second) // after the threshold
	s.Log.Await("a script blocks all other calls")
	require.Regexp(t, `level=WARN msg="a script blocks all other calls.* script=694a5fe1ddb97a4c6a1bf299d9537c7d3d0f84e7 id=`+id+` runs_for=`, s.Log.String())
	require.Equal(t, inproc.OK, other.Do("SCRIPT", "KILL"))
	require.Contains(t, c.Reply(), "-ERR")
	require.Equal(t, 1, strings.Count(s.Log.String(), "blocks all other calls"))
}
