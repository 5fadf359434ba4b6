package acl

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"slices"
	"strings"
	"sync/atomic"
)

// User is a user of the ACL. All clients that are logged in as the user share it, so a change of its rules
// takes effect for all of them at once. Any goroutine may use it.
type User struct {
	Name  string
	rules atomic.Pointer[Rules]
}

// Rules returns what the user may do at the moment.
func (u *User) Rules() *Rules { return u.rules.Load() }

// digest is the SHA-256 of a password.
type digest = [sha256.Size]byte

// Rules are the permissions of a user. They are immutable after a user has them.
type Rules struct {
	// Unrestricted says that every command, key and channel is permitted, so that no other check is
	// needed.
	Unrestricted bool
	// On says that the user may log in. NoPass says that any password is accepted.
	On, NoPass bool
	// skipSanitize is a rule of Redis without effect here: values of RESTORE are always checked.
	skipSanitize bool
	passwords    []digest
	selectors    []*Selector // the root first; at least one
	cost         int         // about how many bytes they take
}

// Allow reports whether the first selector alone allows a command with one key.
func (r *Rules) Allow(id int, key []byte, access Access) bool {
	s := r.selectors[0]
	return (s.allCommands || s.commands.has(id)) && s.Key(key, access)
}

// Open reports whether a connection that has not logged in may run commands, if these are the rules of
// the user default.
func (r *Rules) Open() bool { return r.On && r.NoPass && r.mayRun() }

// mayRun reports whether there is a command that the rules allow.
func (r *Rules) mayRun() bool {
	return slices.ContainsFunc(r.selectors, func(s *Selector) bool { return len(s.firstArgs) > 0 || !s.commands.empty() })
}

// Selectors returns the selectors, the root first. The caller may not change them.
func (r *Rules) Selectors() []*Selector { return r.selectors }

// newRules returns the rules of a new user: off, without keys, channels and commands.
func newRules(v Vocabulary, allChannels bool) *Rules {
	root := newSelector(v)
	root.allChannels = allChannels
	return &Rules{selectors: []*Selector{root}}
}

func newSelector(v Vocabulary) *Selector {
	return &Selector{commands: newBits(v.Commands()), firstArgs: make(map[int][]string)}
}

// clone returns a copy of the rules, to be modified.
func (r *Rules) clone() *Rules {
	c := *r
	c.passwords = slices.Clone(r.passwords)
	c.selectors = make([]*Selector, len(r.selectors))
	for i, s := range r.selectors {
		c.selectors[i] = s.clone()
	}
	return &c
}

// seal computes the derived fields. It is called after the last modification.
func (r *Rules) seal() *Rules {
	r.cost = rulesCost + len(r.passwords)*sha256.Size
	for _, s := range r.selectors {
		s.allCommands = s.commands.full()
		r.cost += s.cost()
	}
	r.Unrestricted = slices.ContainsFunc(r.selectors, (*Selector).unrestricted)
	return r
}

// equal reports whether two have the same rules in the same order.
func (r *Rules) equal(o *Rules) bool {
	return r.On == o.On && r.NoPass == o.NoPass && r.skipSanitize == o.skipSanitize &&
		slices.Equal(r.passwords, o.passwords) && slices.EqualFunc(r.selectors, o.selectors, (*Selector).equal)
}

// KeepsChannels reports whether all channels that before permits are still permitted. A pattern
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

// Flags returns what ACL GETUSER shows as flags.
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

// Passwords returns the digests of the passwords in hexadecimal.
func (r *Rules) Passwords() []string {
	text := make([]string, len(r.passwords))
	for i, d := range r.passwords {
		text[i] = hex.EncodeToString(d[:])
	}
	return text
}

// Text returns the rules as equivalent text, as in ACL LIST and files.
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

// leastCompared is the least number of passwords that a password is compared with, so that the time does
// not reveal whether a user has any. Few users have more.
const leastCompared = 8

// accepts reports whether sum is the digest of a password of the user, and the number of
// comparisons. It always compares with all passwords.
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

// unknown is a digest without a known password.
var unknown digest
