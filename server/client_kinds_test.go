package server_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/server"
)

// TestNewKindsOfClientsAreChanges: another library, or another version, is noted once. What comes
// back after a start is not, and many kinds at once cannot fill the list.
func TestNewKindsOfClientsAreChanges(t *testing.T) {
	f := start(t, "auto")
	var kinds server.ClientKinds
	e := f.Engine()
	look := func() (texts []string) {
		before := e.Changes.Since(0)
		for range server.LookEvery {
			kinds.Look(e)
		}
		for _, c := range e.Changes.Since(before[len(before)-1].ID) {
			require.Equal(t, "client", c.Kind)
			texts = append(texts, c.Text+" / "+c.By)
		}
		return texts
	}
	named := func(name, lib, version string) *client {
		c := f.dial()
		for _, set := range [][]string{{"CLIENT", "SETNAME", name}, {"CLIENT", "SETINFO", "LIB-NAME", lib}, {"CLIENT", "SETINFO", "LIB-VER", version}} {
			if set[len(set)-1] != "" {
				require.Equal(t, okReply, c.do(set...))
			}
		}
		return c
	}
	named("orders", "lettuce", "6.5.0")
	f.dial() // says nothing of itself
	for range server.FirstLooks {
		require.Empty(t, look(), "clients come back after a start")
	}
	require.Empty(t, look())
	named("orders", "lettuce", "6.8.1")
	named("orders", "lettuce", "6.8.1")
	require.Equal(t, []string{"New library: orders now calls with lettuce 6.8.1, was lettuce 6.5.0 / 2 clients"}, look())
	require.Empty(t, look(), "once")
	named("billing", "", "")
	require.Equal(t, []string{"New clients: billing / 1 clients"}, look())
	named("", "jedis", "5")
	require.Equal(t, []string{"New clients: clients without a name with jedis 5 / 1 clients"}, look())
	for i := range 30 {
		named(fmt.Sprintf("worker%d", i), "", "")
	}
	noted := look()
	require.NotEmpty(t, noted)
	require.LessOrEqual(t, len(noted), 5)
	require.Empty(t, look(), "the others are known by now")
}

// TestRunningIsTheScriptThatKeepsOthersWaiting: its client, digest and time, and whether others
// are told.
func TestRunningIsTheScriptThatKeepsOthersWaiting(t *testing.T) {
	f := start(t, "auto", "--busy-reply-threshold", "500")
	e := f.Engine()
	_, is := e.Running()
	require.False(t, is)
	c, other := f.dial(), f.dial()
	id := c.id()
	c.command("EVAL", "while true do end", "0")
	eventually(t, "it runs", func() bool { _, is := e.Running(); return is })
	r, is := e.Running()
	require.True(t, is)
	require.Equal(t, id, fmt.Sprint(r.Client.ID))
	require.Equal(t, "694a5fe1ddb97a4c6a1bf299d9537c7d3d0f84e7", r.Script)
	require.False(t, r.Busy)
	eventually(t, "others are told", func() bool {
		f.clock.Advance(501e6) // its timer may not have begun
		r, is = e.Running()
		return is && r.Busy
	})
	require.Positive(t, r.For)
	eventually(t, "it is killed", func() bool { return other.do("SCRIPT", "KILL") == okReply })
	require.Contains(t, c.reply(), "-ERR")
	// The reply may leave before the others are let in again.
	eventually(t, "nothing runs", func() bool { _, is := e.Running(); return !is })
}
