package admin

import (
	"strings"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/resp"
)

func reportCommand() *command.Command {
	const flags = command.FlagAdmin | command.FlagNoScript | command.FlagLoading | command.FlagStale | command.FlagAllowBusy | command.FlagLocal
	sub := func(name string, arity int, syntax, summary string) *command.Command {
		cmd := command.Subcommand("rl.report", name, arity, flags, syntax, summary, "JSON, as the admin port answers it", reportRun)
		cmd.Group = "ratelimit"
		return cmd
	}
	return &command.Command{
		Name: "rl.report", Arity: -2, Group: "ratelimit", Summary: "A container for reports about the server, for people.", Since: "1.0.0",
		Sub: []*command.Command{
			sub("changes", -2, "[SINCE id]", "Returns what has changed and may explain what is seen, the newest first."),
			sub("groups", 2, "", "Returns the groups of keys, with what is called and denied of each."),
			sub("history", -2, "[SPAN seconds]", "Returns what was allowed and denied, step by step, with changes."),
			sub("keys", -2, "[BY <DENIED | CALLS>] [COUNT count] [GROUP group]", "Returns the keys that are denied or called most, with their callers."),
			sub("overview", 2, "", "Returns in one sentence how the server is, and the checks behind it."),
		},
	}
}

// reportOptions are the options of RL.REPORT, with the parameters of the admin port that
// correspond to them.
var reportOptions = [...]struct{ report, word, parameter string }{
	{"changes", "SINCE", "since"},
	{"history", "SPAN", "span"},
	{"keys", "BY", "by"},
	{"keys", "COUNT", "n"},
	{"keys", "GROUP", "group"},
}

// reportRun is the handler of each subcommand.
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
