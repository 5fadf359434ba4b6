package admin

import (
	"strings"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
)

func reportCommand() *command.Command {
	const flags = command.FlagAdmin | command.FlagNoScript | command.FlagLoading | command.FlagStale | command.FlagAllowBusy | command.FlagLocal

	const json = "JSON, as the admin port answers it"
	return &command.Command{
		Name: "rl.report", Arity: -2, Group: "ratelimit", Summary: "A container for reports about the server, for people.", Since: "1.0.0",
		Sub: command.Entries(command.Defaults{Group: "ratelimit", Since: "1.0.0", Complexity: "O(1)"}, []*command.Command{
			{
				Name: "rl.report|changes", Arity: -2, Flags: flags,
				Summary: "Returns what has changed and may explain what is seen, the newest first.", Syntax: "[SINCE id]",
				Reply: json, Run: reportRun,
			},
			{
				Name: "rl.report|groups", Arity: 2, Flags: flags,
				Summary: "Returns the groups of keys, with what is called and denied of each.", Reply: json,
				Run: reportRun,
			},
			{
				Name: "rl.report|history", Arity: -2, Flags: flags,
				Summary: "Returns what was allowed and denied, step by step, with changes.", Syntax: "[SPAN seconds]",
				Reply: json, Run: reportRun,
			},
			{
				Name: "rl.report|keys", Arity: -2, Flags: flags,
				Summary: "Returns the keys that are denied or called most, with their callers.",
				Syntax:  "[BY <DENIED | CALLS>] [COUNT count] [GROUP group]", Reply: json, Run: reportRun,
			},
			{
				Name: "rl.report|overview", Arity: 2, Flags: flags,
				Summary: "Returns in one sentence how the server is, and the checks behind it.", Reply: json,
				Run: reportRun,
			},
		}),
	}
}

// reportOptions are the options of RL.REPORT. Each has the report that accepts the option, the word
// of the option, and the corresponding parameter of the admin port.
var reportOptions = [...]struct{ report, word, parameter string }{
	{"changes", "SINCE", "since"},
	{"history", "SPAN", "span"},
	{"keys", "BY", "by"},
	{"keys", "COUNT", "n"},
	{"keys", "GROUP", "group"},
}

// reportRun is the Run function of all subcommands of RL.REPORT. It creates the report in the
// background or, while a script is busy, at once.
func reportRun(c *command.Call) {
	name := strings.TrimPrefix(c.Cmd.Name, "rl.report|")
	given := make(map[string][]string)
	for rest := c.Args[2:]; len(rest) > 0; rest = rest[2:] {
		parameter := ""
		for _, o := range reportOptions {
			if o.report == name && arg.IsWord(rest[0], o.word) {
				parameter = o.parameter
			}
		}
		if parameter == "" || len(rest) < 2 || given[parameter] != nil {
			c.Fail(resp.SyntaxNear(rest[0]))
			return
		}
		value := string(rest[1])
		if parameter == "by" {
			value = strings.ToLower(value)
		}
		given[parameter] = []string{value}
	}
	reports := c.Server.Options.Report
	if reports == nil {
		c.Fail("ERR this server makes no reports")
		return
	}
	u, from := c.Client.User.Load(), c.Client.Addr()
	answer := func(_ env.Store, w *resp.Writer) {
		text, err := reports(u, from, name, given)
		if err != nil {
			w.Error(resp.Error("ERR " + string(command.Echo([]byte(err.Error()), 2*command.MaxEcho))))
			return
		}
		w.Bulk(text)
	}
	if c.Busy { // the store cannot be entered
		answer(nil, c.W)
		return
	}
	c.Offload(answer)
}
