package policies

import (
	"errors"
	"strings"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/document"
	"github.com/cellserver/cellserver/policy/policyfile"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/resp"
)

// dump is the Run function of RL.POLICY DUMP. With FILE, on a server with a policy file, it leaves
// out the entries that the file does not define.
func dump(c *command.Call) {
	r := c.Server.Options.Policies
	if r == nil {
		c.Fail(errNone)
		return
	}
	var keep func(*policy.Entry) bool
	switch {
	case len(c.Args) > 3 || len(c.Args) == 3 && !arg.IsWord(c.Args[2], "FILE"):
		c.Fail(resp.SyntaxNear(c.Args[len(c.Args)-1]))
		return
	case len(c.Args) == 3 && r.HasFile():
		keep = r.Defines
	}
	outside(c, func() { c.W.Bulk(r.Document(c.Store.Now(), c.Store.Civil, keep).Append(nil)) })
}

// dumpSize is the ReplySize function of RL.POLICY DUMP and RL.POLICY DIFF. It returns the
// approximate size of the reply in bytes.
func dumpSize(cl *command.Client, _ env.Store, _ *command.Command, _ [][]byte) int {
	s := tableOf(cl.Server).Sizes()
	return (s.Policies + s.Overrides) * overrideBytes
}

// parseDocument parses the YAML text in c.Args[2]. If that fails, it replies with an error and
// returns nil.
func parseDocument(c *command.Call) (d *document.Document) {
	if c.Server.Options.Policies == nil {
		c.Fail(errNone)
		return nil
	}
	var faults document.Faults
	outside(c, func() { d, faults = document.Parse("yaml", c.Args[2], bounds(c)) })
	if len(faults) > 0 {
		c.Fail(resp.Error("ERR " + faultText(faults)))
		return nil
	}
	return d
}

// shownFaults is the maximum number of faults of a YAML text that an error reply shows.
const shownFaults = 3

func faultText(faults document.Faults) (text string) {
	for i, f := range faults[:min(len(faults), shownFaults)] {
		if i > 0 {
			text += "; "
		}
		text += f.Error()
	}
	return string(command.Echo([]byte(text), 4*command.MaxEcho))
}

// diff is the Run function of RL.POLICY DIFF. It replies with the changes that RL.POLICY APPLY
// would make, as text.
func diff(c *command.Call) {
	if d := parseDocument(c); d != nil {
		outside(c, func() {
			c.W.Bulk(document.AppendChanges(nil, c.Server.Options.Policies.Preview(c.Store.Now(), c.Store.Civil, d)))
		})
	}
}

// apply is the Run function of RL.POLICY APPLY. It replies with the number of policies and
// overrides that have changed.
func apply(c *command.Call) {
	d := parseDocument(c)
	if d == nil {
		return
	}
	changed, err := 0, error(nil)
	changing(c, func(st registry.Store) {
		changed, err = c.Server.Options.Policies.Apply(st, author(c), d, bounds(c))
	})
	if err != nil {
		fail(c, err)
		return
	}
	c.W.Int(int64(changed))
}

const errNoFile resp.Error = "ERR This server has no policy file: see the option policy-file"

// reload is the Run function of RL.POLICY RELOAD. It loads the rules of files and applies the policy file again,
// and replies with the number of policies and overrides that have changed.
func reload(c *command.Call) {
	file, rules := c.Server.Options.PolicyFile, c.Server.Options.ReloadRules
	if file == nil && rules == nil {
		c.Fail(errNoFile)
		return
	}
	all := 0
	if rules != nil {
		var err error
		outside(c, func() { all, err = rules() })
		if err != nil {
			failReload(c, err)
			return
		}
	}
	if file == nil {
		c.W.Int(int64(all))
		return
	}
	by, changed, err := author(c), 0, error(nil)
	by.File = true
	changing(c, func(st registry.Store) { changed, err = file.Load(st, by) })
	var unread *policyfile.ReadError
	switch {
	case errors.As(err, &unread):
		c.Server.Log.Warn("the policy file was not loaded", "error", err)
		failReload(c, unread)
		return
	case err != nil:
		fail(c, err)
		return
	}
	c.W.Int(int64(all + changed))
}

// failReload replies with err, the faults of a file.
func failReload(c *command.Call, err error) {
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	c.Fail(resp.Error("ERR " + string(command.Echo([]byte(text), 4*command.MaxEcho))))
}
