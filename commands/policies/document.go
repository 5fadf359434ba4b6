package policies

import (
	"errors"
	"strings"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/policy/document"
	"github.com/cellserver/cellserver/policy/policyfile"
	"github.com/cellserver/cellserver/resp"
)

// dump is RL.POLICY DUMP.
func dump(c *command.Call) {
	r := c.Server.Options.Policies
	if r == nil {
		c.Fail(errNone)
		return
	}
	c.OffloadSized(
		func(env.Store) int { s := r.Table().Sizes(); return (s.Policies + s.Overrides) * overrideBytes },
		func(st env.Store, w *resp.Writer) { w.Bulk(r.Document(st.Civil).Append(nil)) })
}

// parseDocument reads the YAML of the running command. If there is a fault it has answered.
func parseDocument(c *command.Call) *document.Document {
	if c.Server.Options.Policies == nil {
		c.Fail(errNone)
		return nil
	}
	d, faults := document.Parse("yaml", c.Args[2], bounds(c))
	if len(faults) > 0 {
		c.Fail(resp.Error("ERR " + faultText(faults)))
		return nil
	}
	return d
}

// shownFaults is how many faults of a text an error tells.
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

// diff is RL.POLICY DIFF.
func diff(c *command.Call) {
	if d := parseDocument(c); d != nil {
		now := c.Server.Options.Policies.Document(c.Store.Civil)
		c.W.Bulk(document.AppendChanges(nil, document.Diff(now, d)))
	}
}

// apply is RL.POLICY APPLY.
func apply(c *command.Call) {
	d := parseDocument(c)
	if d == nil {
		return
	}
	changed, err := c.Server.Options.Policies.Apply(Store(c.Store), author(c), d, bounds(c))
	if err != nil {
		fail(c, err)
		return
	}
	c.W.Int(int64(changed))
}

const errNoFile resp.Error = "ERR This server has no policy file: see the option policy-file"

// reload is RL.POLICY RELOAD.
func reload(c *command.Call) {
	file := c.Server.Options.PolicyFile
	if file == nil {
		c.Fail(errNoFile)
		return
	}
	by := author(c)
	by.File = true
	changed, err := file.Load(Store(c.Store), by)
	var unread *policyfile.ReadError
	switch {
	case errors.As(err, &unread):
		c.Server.Log.Warn("the policy file was not loaded", "error", err)
		text := strings.ReplaceAll(unread.Error(), "\n", "; ")
		c.Fail(resp.Error("ERR " + string(command.Echo([]byte(text), 4*command.MaxEcho))))
		return
	case err != nil:
		fail(c, err)
		return
	}
	c.W.Int(int64(changed))
}
