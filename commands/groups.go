package commands

// families lists the whole surface of the server, one slice for each file.
func families() [][]*Command {
	return [][]*Command{
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
func NewTable() *Table { return MakeTable(families()) }

// NewRenamedTable is NewTable with commands under other names; see [MakeRenamedTable].
func NewRenamedTable(pairs [][2]string) (*Table, error) { return MakeRenamedTable(families(), pairs) }
