package acl

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"slices"
	"strings"
	"sync/atomic"
)

// User is a user of the ACL. All clients that are logged in as the user share it, so a change of
// its rules takes effect for all of them at once. Any goroutine may use it.
type User struct {
	Name  string
	rules atomic.Pointer[Rules]
}

// Rules returns the permissions that the user has now.
func (u *User) Rules() *Rules { return u.rules.Load() }

// digest is the SHA-256 hash of a password.
type digest = [sha256.Size]byte

// Rules are the permissions of a user. They do not change after a user has them.
type Rules struct {
	// Unrestricted says that one selector permits every command, key and channel, so that no other
	// check is needed.
	Unrestricted bool
	// On says that the user may log in. NoPass says that any password is accepted.
	On, NoPass bool
	// skipSanitize is the rule skip-sanitize-payload of Redis, which has no effect here: values of
	// RESTORE are always checked.
	skipSanitize bool
	passwords    []digest
	selectors    []*Selector // the selectors, at least one; the root selector is the first
	cost         int         // approximate memory of the rules in bytes
}

// Allow reports whether the root selector alone permits to call the command with the number id with
// one key, which it accesses in the way that access says. If it returns false, another selector may
// permit the call.
func (r *Rules) Allow(id int, key []byte, access Access) bool {
	s := r.selectors[0]
	return (s.allCommands || s.commands.has(id)) && s.Key(key, access)
}

// AllowSome reports whether there is a call of the command with the number id, about a key that it accesses in the way that
// access says, which a selector permits.
func (r *Rules) AllowSome(id int, access Access) bool {
	return slices.ContainsFunc(r.selectors, func(s *Selector) bool {
		called := s.allCommands || s.commands.has(id) || len(s.firstArgs[id]) > 0
		return called && (s.allKeys || slices.ContainsFunc(s.keys, func(p pattern) bool { return p.access&access == access }))
	})
}

// Open reports whether a client that has not logged in may run commands if r are the rules of the
// user default.
func (r *Rules) Open() bool { return r.On && r.NoPass && r.mayRun() }

// mayRun reports whether r permits at least one command.
func (r *Rules) mayRun() bool {
	return slices.ContainsFunc(r.selectors, func(s *Selector) bool { return len(s.firstArgs) > 0 || !s.commands.empty() })
}

// Selectors returns the selectors, the root selector first. The caller must not change them.
func (r *Rules) Selectors() []*Selector { return r.selectors }

// newRules returns the rules of a new user, which permit no command and no key, and do not permit
// to log in. allChannels says whether they permit all channels or none.
func newRules(v Vocabulary, allChannels bool) *Rules {
	root := newSelector(v)
	root.allChannels = allChannels
	return &Rules{selectors: []*Selector{root}}
}

func newSelector(v Vocabulary) *Selector {
	return &Selector{commands: newBits(v.Commands()), firstArgs: make(map[int][]string)}
}

// clone returns a deep copy of the rules, which the caller may change.
func (r *Rules) clone() *Rules {
	c := *r
	c.passwords = slices.Clone(r.passwords)
	c.selectors = make([]*Selector, len(r.selectors))
	for i, s := range r.selectors {
		c.selectors[i] = s.clone()
	}
	return &c
}

// seal sets the fields that follow from others, Unrestricted, cost and allCommands of the
// selectors, and returns r. It must be called after the last change.
func (r *Rules) seal() *Rules {
	r.cost = rulesCost + len(r.passwords)*sha256.Size
	for _, s := range r.selectors {
		s.allCommands = s.commands.full()
		r.cost += s.cost()
	}
	r.Unrestricted = slices.ContainsFunc(r.selectors, (*Selector).unrestricted)
	return r
}

// equal reports whether r and o have the same rules in the same order.
func (r *Rules) equal(o *Rules) bool {
	return r.On == o.On && r.NoPass == o.NoPass && r.skipSanitize == o.skipSanitize &&
		slices.Equal(r.passwords, o.passwords) && slices.EqualFunc(r.selectors, o.selectors, (*Selector).equal)
}

// KeepsChannels reports whether r still permits all channels that before has permitted. A pattern
// counts as kept only if it is unchanged.
func (r *Rules) KeepsChannels(before *Rules) bool {
	if r.Unrestricted || slices.ContainsFunc(r.selectors, func(s *Selector) bool { return s.allChannels }) {
		return true
	}
	kept := make(map[string]bool)
	for _, s := range r.selectors {
		for i := range s.channels {
			kept[s.channels[i].text] = true
		}
	}
	for _, s := range before.selectors {
		if s.allChannels || slices.ContainsFunc(s.channels, func(p pattern) bool { return !kept[p.text] }) {
			return false
		}
	}
	return true
}

// Flags returns the flags that ACL GETUSER shows.
func (r *Rules) Flags() []string {
	flags := []string{"off"}
	if r.On {
		flags[0] = "on"
	}
	if r.NoPass {
		flags = append(flags, "nopass")
	}
	if r.skipSanitize {
		return append(flags, "skip-sanitize-payload")
	}
	return append(flags, "sanitize-payload")
}

// Passwords returns the digests of the passwords in hexadecimal digits.
func (r *Rules) Passwords() []string {
	text := make([]string, len(r.passwords))
	for i, d := range r.passwords {
		text[i] = hex.EncodeToString(d[:])
	}
	return text
}

// Text returns rules that are equivalent to r as one line, as in ACL LIST and in files.
func (r *Rules) Text() string {
	parts := r.Flags()
	for _, p := range r.Passwords() {
		parts = append(parts, "#"+p)
	}
	for i, s := range r.selectors {
		if i == 0 {
			parts = append(parts, s.text())
		} else {
			parts = append(parts, "("+s.text()+")")
		}
	}
	return strings.Join(parts, " ")
}

// leastCompared is the minimum number of digests with which a password is compared, so that the
// time does not reveal how many passwords a user has. Few users have more.
const leastCompared = 8

// accepts reports whether sum is the digest of a password of the user, or the user needs none. It
// always compares sum with all passwords, and with at least leastCompared digests. compared is the
// number of comparisons.
func (r *Rules) accepts(sum *digest) (ok bool, compared int) {
	found := 0
	for i := range r.passwords {
		found |= subtle.ConstantTimeCompare(r.passwords[i][:], sum[:])
	}
	compared = len(r.passwords)
	for ; compared < leastCompared; compared++ {
		subtle.ConstantTimeCompare(unknown[:], sum[:])
	}
	return found == 1 || r.NoPass, compared
}

// unknown is a digest that stands for a password which no client can give.
var unknown digest
