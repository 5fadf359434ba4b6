package acl

import "crypto/sha256"

// Compared returns how many passwords a login with that name is compared with.
func (us *Users) Compared(name string, password []byte) (compared int) {
	sum, r := sha256.Sum256(password), noRules
	if u := us.Find(name); u != nil {
		r = u.Rules()
	}
	_, compared = r.accepts(&sum)
	return compared
}
