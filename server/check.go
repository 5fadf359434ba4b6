package server

import (
	"errors"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/policy/policyfile"
)

// Check returns the faults of a configuration that a start of the server would find, including
// faults in the files that it names. It opens no listener and changes nothing.
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
