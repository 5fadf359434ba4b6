package commands

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
)

// TestWorkOfEveryCommandIsBounded: a command with a variable number of arguments leaves the loop
// when it has many, or declares why it does not.
func TestWorkOfEveryCommandIsBounded(t *testing.T) {
	for _, cmd := range NewTable().All() {
		if cmd.Run == nil || cmd.Arity > 0 {
			continue
		}
		c := &command.Call{Worker: &command.Worker{}, Client: &command.Client{}, Cmd: cmd}
		if cmd.StaysOnLoop() == "" {
			require.True(t, c.WordsLeave(1<<16), "%s: with as many words as there may be", cmd.Name)
			require.Zero(t, c.Work, "%s: what leaves is not counted against the turn", cmd.Name)
		}
		require.Equal(t, cmd.WordWork >= command.MaxLoopWork, c.WordsLeave(8), "%s: with few words, unless it may wait", cmd.Name)
		c.Client.Exclusive = true
		require.False(t, c.WordsLeave(1<<16), "%s: inside a transaction", cmd.Name)
	}
}

// TestCommandsThatNeverLeaveTheLoopAreListed: the commands that never leave the loop because of
// their arguments are those of a list, so that none is added by accident.
func TestCommandsThatNeverLeaveTheLoopAreListed(t *testing.T) {
	may := map[string]bool{"connection": true, "pubsub": true, "transactions": true, "scripting": true}
	for _, cmd := range NewTable().All() {
		if cmd.Run == nil || cmd.Arity > 0 || cmd.StaysOnLoop() == "" {
			continue
		}
		require.True(t, may[cmd.Group] || cmd.Flags&command.FlagBlocking != 0, "%s stays on its loop: %s", cmd.Name, cmd.StaysOnLoop())
	}
}

// TestLinearCommandsAreThoseWithTheFlag: the commands with FlagLinear are those that go through a
// collection, and not those that take one element.
func TestLinearCommandsAreThoseWithTheFlag(t *testing.T) {
	linear := map[string]bool{}
	for _, cmd := range NewTable().All() {
		if cmd.Flags&command.FlagLinear == 0 {
			continue
		}
		linear[cmd.Name] = true
		require.Contains(t, []string{"hash", "list", "set", "sorted-set"}, cmd.Group, cmd.Name)
		require.Zero(t, cmd.Flags&command.FlagFast, cmd.Name)
		require.Equal(t, cmd.Flags&command.FlagReadonly != 0, cmd.RepliesValues(), cmd.Name)
	}
	for _, name := range []string{
		"hgetall", "hkeys", "hvals", "hscan", "lrange", "lrem", "ltrim", "lmpop", "blmpop", "smembers", "srandmember", "sscan", "zrange",
		"zrevrange", "zrangebyscore", "zrevrangebyscore", "zscan", "zremrangebyscore", "zremrangebyrank", "zmpop", "bzmpop",
	} {
		require.True(t, linear[name], name)
		delete(linear, name)
	}
	require.Empty(t, linear)
}
