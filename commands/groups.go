package commands

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/hashes"
	"github.com/cellserver/cellserver/commands/keys"
	"github.com/cellserver/cellserver/commands/sets"
	"github.com/cellserver/cellserver/commands/strings"
)

// families lists the whole surface of the server, one slice for each file.
func families(r *command.Registry) [][]*command.Command {
	return [][]*command.Command{
		throttleCommands(),
		slidingWindowCommands(),
		tokenBucketCommands(),
		concurrencyCommands(),
		multiCommands(),
		ratelimitCommands(),
		transactionCommands(),
		scriptingCommands(),
		functionCommands(),
		listCommands(),
		blockingCommands(),
		sets.Commands(),
		keys.Commands(),
		strings.Commands(),
		strings.CounterCommands(),
		hashes.Commands(r),
		sortedSetCommands(),
		keys.ExpireCommands(),
		keys.ScanCommands(),
		pubsubCommands(),
		connectionCommands(),
		clientCommands(),
		introspectCommands(),
		infoCommands(),
		saveCommands(),
		configCommands(),
		adminCommands(),
		clusterCommands(),
	}
}

// NewTable builds the table of every command.
func NewTable() *command.Table {
	t, _ := NewRenamedTable(nil)
	return t
}

// NewRenamedTable is NewTable with commands under other names; see [command.NewRenamedTable].
func NewRenamedTable(pairs [][2]string) (*command.Table, error) {
	r := &command.Registry{}
	t, err := command.NewRenamedTable(families(r), pairs)
	if err != nil {
		return nil, err
	}
	t.Registry = r
	return t, nil
}
