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
				Name: "rl.report|groups", Arity: -2, Flags: flags,
				Summary: "Returns the groups of keys, with what is called and denied of each.", Syntax: "[FLEET]",
				Reply: json, Run: reportRun,
			},
			{
				Name: "rl.report|history", Arity: -2, Flags: flags,
				Summary: "Returns what was allowed and denied, step by step, with changes.", Syntax: "[SPAN seconds] [FLEET]",
				Reply: json, Run: reportRun,
			},
			{
				Name: "rl.report|keys", Arity: -2, Flags: flags,
				Summary: "Returns the keys that are denied or called most, with their callers.",
				Syntax:  "[BY <DENIED | CALLS>] [COUNT count] [GROUP group] [FLEET]", Reply: json, Run: reportRun,
			},
			{
				Name: "rl.report|overview", Arity: -2, Flags: flags,
				Summary: "Returns in one sentence how the server is, and the checks behind it.", Syntax: "[FLEET]",
				Reply: json, Run: reportRun,
			},
		}),
	}
}

// reportOptions are the options of RL.REPORT. Each has the report that accepts the option, "" for all but changes, the word
// of the option, and the corresponding parameter of the admin port.
var reportOptions = [...]struct{ report, word, parameter string }{
	{"changes", "SINCE", "since"},
	{"history", "SPAN", "span"},
	{"keys", "BY", "by"},
	{"keys", "COUNT", "n"},
	{"keys", "GROUP", "group"},
	{"", "FLEET", "fleet"},
}

// parseReport returns the parameters of the admin port for args, the options of the report called name. The error is "" on
// success.
func parseReport(name string, args [][]byte) (given map[string][]string, err resp.Error) {
	given = make(map[string][]string)
	for len(args) > 0 {
		word, parameter := args[0], ""
		for _, o := range reportOptions {
			if (o.report == name || o.report == "" && name != "changes") && arg.IsWord(word, o.word) {
				parameter = o.parameter
			}
		}
		value := "all"
		if args = args[1:]; parameter != "fleet" && len(args) > 0 {
			value, args = string(args[0]), args[1:]
		} else if parameter != "fleet" {
			parameter = ""
		}
		if parameter == "" || given[parameter] != nil {
			return nil, resp.SyntaxNear(word)
		}
		if parameter == "by" {
			value = strings.ToLower(value)
		}
		given[parameter] = []string{value}
	}
	return given, ""
}

// reportRun is the Run function of all subcommands of RL.REPORT. It creates the report in the background or, while a
// script is busy, at once. A report about all servers waits for the store, except inside a transaction and while a
// script is busy: then it shows what this server knows already.
func reportRun(c *command.Call) {
	name := strings.TrimPrefix(c.Cmd.Name, "rl.report|")
	given, err := parseReport(name, c.Args[2:])
	reports := c.Server.Options.Report
	switch {
	case err != "":
		c.Fail(err)
		return
	case reports == nil:
		c.Fail("ERR this server makes no reports")
		return
	}
	u, from := c.Client.User.Load(), c.Client.Addr()
	report := func() (text []byte, err error) { return reports(u, from, name, given) }
	switch fleet := given["fleet"] != nil; {
	case fleet && !c.Busy && !c.Client.Exclusive:
		var text []byte
		var err error
		c.AskAside(func() { text, err = report() }, func(w *resp.Writer) { writeReport(w, text, err) })
		return
	case fleet:
		given["fleet"] = []string{"known"}
	}
	answer := func(_ env.Store, w *resp.Writer) {
		text, err := report()
		writeReport(w, text, err)
	}
	if c.Busy { // while a script is busy, the store cannot be entered
		answer(nil, c.W)
		return
	}
	c.Offload(answer)
}

// writeReport replies with the text of a report, or with the reason why there is none.
func writeReport(w *resp.Writer, text []byte, err error) {
	if err != nil {
		w.Error(resp.Error("ERR " + string(command.Echo([]byte(err.Error()), 2*command.MaxEcho))))
		return
	}
	w.Bulk(text)
}
