package command_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
)

// TestEntriesSetWhatIsLeftOut: an entry keeps what it says, gets all else, and a container gets only
// what it can have.
func TestEntriesSetWhatIsLeftOut(t *testing.T) {
	run := func(*command.Call) {}
	sub := &command.Command{Name: "own|sub", Run: run}
	own := command.KeySpec{First: 2, Last: 2, Step: 1}
	channels := command.KeySpec{Channels: command.ChannelSpec{First: 1, Last: 1}}
	list := command.Entries(command.Defaults{
		Keys: command.OneKey, Categories: command.CatHash, Group: "hash", Since: "1.0.0", Complexity: "O(1)", WordWork: 3,
	}, []*command.Command{
		{Name: "plain", Run: run},
		{Name: "own", Keys: own, Categories: command.CatSet, Group: "set", Since: "1.1.0", Complexity: "O(N)", WordWork: 1, Run: run},
		{Name: "used", Keys: command.OneKey.Uses(command.UsesDeletes), Run: run},
		{Name: "channels", Keys: channels, Run: run},
		{Name: "container", Sub: []*command.Command{sub}},
	})
	fields := func(c *command.Command) []any {
		return []any{c.Categories, c.Group, c.Since, c.Complexity, c.WordWork}
	}
	require.Equal(t, []any{command.CatHash, "hash", "1.0.0", "O(1)", 3}, fields(list[0]))
	require.Equal(t, command.OneKey, list[0].Keys)
	require.Equal(t, []any{command.CatSet, "set", "1.1.0", "O(N)", 1}, fields(list[1]))
	require.Equal(t, own, list[1].Keys)
	require.Equal(t, command.UsesDeletes, list[2].Keys.Use)
	require.Equal(t, channels, list[3].Keys, "channels are not dropped for keys")
	require.Equal(t, []any{command.Category(0), "hash", "1.0.0", "", 0}, fields(list[4]))
	require.True(t, list[4].Keys.None())
	require.Equal(t, &command.Command{Name: "own|sub"}, &command.Command{Name: sub.Name, Group: sub.Group, Since: sub.Since})
	require.Zero(t, command.OneKey.Use, "Uses changes a copy")
}
