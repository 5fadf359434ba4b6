package server_test

import (
	"log/slog"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/hashes"
	"github.com/cellserver/cellserver/commands/sets"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/server"
)

// TestRenamingACommandThatIsLeftOut: New refuses to rename a command that the given groups do not
// have.
func TestRenamingACommandThatIsLeftOut(t *testing.T) {
	c, err := config.Load([]string{"--rename-command", "hset", "hashset"}, nil)
	require.NoError(t, err)
	options := server.Options{
		Groups:    func() []command.Group { return []command.Group{sets.Group()} },
		Listeners: []net.Listener{}, Log: slog.New(slog.DiscardHandler),
	}
	_, err = server.New(c, options)
	require.EqualError(t, err, `option "rename-command": no such command "hset"`)

	options.Groups = func() []command.Group { return []command.Group{hashes.Group()} }
	s, err := server.New(c, options)
	require.NoError(t, err)
	require.NotNil(t, s.Engine().Table().Lookup([]byte("hashset")))
	require.Nil(t, s.Engine().Table().Lookup([]byte("sadd")))
	s.Engine().Close()
	s.Keyspace().Close()
}
