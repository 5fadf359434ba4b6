package commands

import (
	"slices"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/hashes"
	"github.com/cellserver/cellserver/commands/keys"
	"github.com/cellserver/cellserver/commands/limiters"
	"github.com/cellserver/cellserver/commands/sets"
	"github.com/cellserver/cellserver/commands/sortedsets"
	"github.com/cellserver/cellserver/commands/strings"
)

// groups lists the whole surface of the server.
func groups() []command.Group {
	only := func(commands ...[]*command.Command) command.Group {
		return command.Group{Commands: slices.Concat(commands...)}
	}
	return []command.Group{
		limiters.Group(),
		hashes.Group(),
		only(strings.Commands(), strings.CounterCommands()),
		only(keys.Commands(), keys.ExpireCommands(), keys.ScanCommands()),
		only(sets.Commands()),
		only(listCommands(), listPopCommands()),
		sortedsets.Group(),
		only(sortedSetPopCommands()),
		waitGroup(),
		transactionGroup(),
		scriptGroup(),
		subscriptionGroup(),
		trackingGroup(),
		connectionGroup(),
		only(introspectCommands(), infoCommands(), saveCommands(), configCommands(), adminCommands(), clusterCommands()),
	}
}

// NewTable builds the table of every command.
func NewTable() *command.Table { return command.NewTable(groups()) }

// NewRenamedTable is NewTable with commands under other names; see [command.NewRenamedTable].
func NewRenamedTable(pairs [][2]string) (*command.Table, error) {
	return command.NewRenamedTable(groups(), pairs)
}
