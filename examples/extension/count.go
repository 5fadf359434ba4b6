package extension

import (
	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
)

func countCommand() *command.Command {
	return &command.Command{
		Name: "ex.count", Arity: -2, Flags: command.FlagWrite | command.FlagDenyOOM | command.FlagFast,
		Keys: command.OneKey, Categories: command.CatString, Group: "example",
		Summary: "Adds to a counter.", Syntax: "key [increment]",
		Since: "1.0.0", Complexity: "O(1)", Reply: "the sum", RunOn: command.On(count),
	}
}

// count is EX.COUNT.
func count(c storeCall) {
	increment, err := parseCount(c.Args[1:])
	if err != "" {
		c.Fail(err)
		return
	}

	sum, failed := c.Store.AddInt(c.Client.Selected(), c.Args[1], increment)

	if failed != nil {
		c.Fail(command.StoreError(failed))
		return
	}
	c.W.Int(sum)
}

// parseCount parses the arguments `key [increment]`. The default of increment is 1.
func parseCount(args [][]byte) (increment int64, err resp.Error) {
	switch len(args) {
	case 1:
		return 1, ""
	case 2:
		increment, ok := arg.Int(args[1])
		if !ok {
			return 0, resp.ErrNotInteger
		}
		return increment, ""
	}
	return 0, resp.ErrSyntax
}
