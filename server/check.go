package server

import (
	"errors"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/policy/policyfile"
)

// Check returns all faults of the configuration c that a start of the server would find, including
// those in the files that c names. It is nil if there are none. Check opens no listener and changes
// nothing.
func Check(c *config.Config) error {
	o := Options{}
	table, err := o.commandTable(c)
	if err != nil {
		return err
	}
	faults := []error{checkDir(c), policyfile.Check(c.Path("policy-file"), c.PolicyBounds())}
	passwords := c.Value("requirepass") != ""
	if c.DefinesUsers() {
		users, err := checkedUsers(c, acl.NewUsers(table))
		faults = append(faults, err)
		passwords = passwords || err != nil || users.HavePasswords()
	}
	_, err = loadTLS(c)
	return errors.Join(append(faults, err, c.RefuseReachableAdmin(passwords))...)
}
