package commands

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/admin"
	"github.com/cellserver/cellserver/commands/connection"
	"github.com/cellserver/cellserver/commands/hashes"
	"github.com/cellserver/cellserver/commands/keys"
	"github.com/cellserver/cellserver/commands/limiters"
	"github.com/cellserver/cellserver/commands/lists"
	"github.com/cellserver/cellserver/commands/monitor"
	"github.com/cellserver/cellserver/commands/policies"
	"github.com/cellserver/cellserver/commands/pubsub"
	"github.com/cellserver/cellserver/commands/replication"
	"github.com/cellserver/cellserver/commands/scripting"
	"github.com/cellserver/cellserver/commands/sets"
	"github.com/cellserver/cellserver/commands/sortedsets"
	"github.com/cellserver/cellserver/commands/strings"
	"github.com/cellserver/cellserver/commands/tracking"
	"github.com/cellserver/cellserver/commands/transactions"
	"github.com/cellserver/cellserver/commands/users"
)

// Groups returns all groups of commands. Each group can be left out, because the others do not
// depend on it. The entries are new at each call.
func Groups() []command.Group {
	return []command.Group{
		limiters.Group(),
		policies.Group(),
		strings.Group(),
		hashes.Group(),
		lists.Group(),
		sets.Group(),
		sortedsets.Group(),
		keys.Group(),
		transactions.Group(),
		scripting.Group(),
		pubsub.Group(),
		tracking.Group(),
		connection.Group(),
		users.Group(),
		monitor.Group(),
		replication.Group(),
		admin.Group(),
	}
}

// NewTable returns a new table of all commands.
func NewTable() *command.Table { return command.NewTable(Groups()) }

// NewRenamedTable returns a table of all commands, some of them under other names: see
// [command.NewRenamedTable].
func NewRenamedTable(pairs [][2]string) (*command.Table, error) {
	return command.NewRenamedTable(Groups(), pairs)
}

// NewStoreTable is NewRenamedTable for a server whose keys are in a remote store; see
// [command.NewStoreTable].
func NewStoreTable(pairs [][2]string) (*command.Table, error) {
	return command.NewStoreTable(Groups(), pairs)
}
