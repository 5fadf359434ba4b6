package server

import (
	"errors"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/policy/policyfile"
)

// Check returns all faults that a start of the server would find in the configuration c and in the
// files that c names; nil if there are none. If a line rename-command has a fault, Check returns
// only that one. Check opens no listener and changes nothing.
func Check(c *config.Config) error {
	o := Options{}
	table, err := o.commandTable(c)
	if err != nil {
		return err
	}
	faults := []error{checkDir(c), policyfile.Check(c.Path("policy-file"), c.PolicyBounds()), checkRules(c)}
	passwords := c.Value("requirepass") != ""
	if c.DefinesUsers() {
		users, err := checkedUsers(c, acl.NewUsers(table))
		faults = append(faults, err)
		passwords = passwords || err != nil || users.HavePasswords()
	}
	_, err = loadTLS(c)
	return errors.Join(append(faults, err, c.RefuseReachableAdmin(passwords))...)
}
