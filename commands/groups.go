package commands

import "github.com/cellserver/cellserver/commands/command"

// families lists the whole surface of the server, one slice for each file.
func families() [][]*command.Command {
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
		setCommands(),
		keyCommands(),
		stringCommands(),
		counterCommands(),
		hashCommands(),
		sortedSetCommands(),
		expireCommands(),
		scanCommands(),
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
func NewTable() *command.Table { return command.NewTable(families()) }

// NewRenamedTable is NewTable with commands under other names; see [command.NewRenamedTable].
func NewRenamedTable(pairs [][2]string) (*command.Table, error) {
	return command.NewRenamedTable(families(), pairs)
}
