package acl

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// MaxFile bounds the bytes of a file of users.
const MaxFile = 64 << 20

// Parsed is a file of users, or the user lines of a configuration, without faults.
type Parsed struct {
	rules  map[string]*Rules
	memory int
}

// Rules returns the rules of a user, nil if the file does not define the user.
func (p *Parsed) Rules(name string) *Rules { return p.rules[name] }

// HavePasswords reports whether any of the users has a password.
func (p *Parsed) HavePasswords() bool {
	for _, r := range p.rules {
		if len(r.Passwords()) > 0 {
			return true
		}
	}
	return false
}

// List returns the users as lines of a file, sorted by name.
func (p *Parsed) List() []string {
	lines := make([]string, 0, len(p.rules))
	for _, name := range slices.Sorted(maps.Keys(p.rules)) {
		lines = append(lines, "user "+name+" "+p.rules[name].Text())
	}
	return lines
}

// definition is the line of one user.
type definition struct {
	at    int // number of the line, from 1
	name  string
	words []string
}

// ParseFile parses a file of users: lines `user name rule ...`, empty lines and lines that begin
// with '#'. It returns all faults with their lines, and changes no user.
func (us *Users) ParseFile(path string, content []byte) (*Parsed, error) {
	if len(content) > MaxFile {
		return nil, fmt.Errorf("%s: the file is longer than %d bytes", path, MaxFile)
	}
	var faults faults
	var defined []definition
	at := 0
	for text := range bytes.Lines(content) {
		at++
		words := SplitWords(string(text))
		switch {
		case len(words) == 0 || words[0][0] == '#':
		case words[0] != "user" || len(words) < 2:
			faults.add(fmt.Errorf("%s:%d should start with user keyword followed by the username", path, at))
		default:
			defined = append(defined, definition{at, words[1], words[2:]})
		}
	}
	parsed := us.parse(defined, func(d definition, err error) {
		var rule *RuleError
		var parenthesis *parenthesisError
		switch {
		case errors.Is(err, errDuplicate):
			err = fmt.Errorf("WARNING: Duplicate user '%s' found on line %d", shown(d.name), d.at)
		case errors.As(err, &rule) && rule.Why == whyUnknown && speaksOfCommand(rule.Rule):
			err = fmt.Errorf("%s:%d: Error in applying operation '%s': %s", path, d.at, shown(rule.Rule), rule.Why)
		case errors.As(err, &rule):
			err = fmt.Errorf("%s:%d: %s", path, d.at, rule.Why)
		case errors.As(err, &parenthesis):
			err = fmt.Errorf("%s:%d: Unmatched parenthesis in selector definition", path, d.at)
		default:
			err = fmt.Errorf("%s:%d: %w", path, d.at, err)
		}
		faults.add(err)
	})
	return parsed, faults.join()
}

// Line is a user line of a configuration.
type Line struct {
	Where string   // the file and the line of it
	Words []string // the name and the rules
	// Included says that the file is included by another one.
	Included bool
}

// ParseLines parses the user lines of a configuration. A line of a user in the main file replaces
// that user's lines in included files: CONFIG REWRITE has no other way to change them.
func (us *Users) ParseLines(lines []Line) (*Parsed, error) {
	var faults faults
	replaced := make(map[string]bool)
	for _, l := range lines {
		replaced[l.Words[0]] = replaced[l.Words[0]] || !l.Included
	}
	var defined []definition
	for i, l := range lines {
		if !l.Included || !replaced[l.Words[0]] {
			defined = append(defined, definition{at: i, name: l.Words[0], words: l.Words[1:]})
		}
	}
	parsed := us.parse(defined, func(d definition, err error) {
		var rule *RuleError
		if errors.As(err, &rule) {
			err = errors.New(rule.Why)
		}
		faults.add(fmt.Errorf("%s: user %s: %w", lines[d.at].Where, shown(d.name), err))
	})
	return parsed, faults.join()
}

// errDuplicate says that a file defines a user twice.
var errDuplicate = errors.New("Duplicate user found. A user can only be defined once in config files") //nolint:staticcheck // Redis' words

// parse returns the rules of definitions, and calls fault for those with errors.
func (us *Users) parse(defined []definition, fault func(d definition, err error)) *Parsed {
	parsed, all := &Parsed{rules: make(map[string]*Rules)}, us.allChannels.Load()
	for _, d := range defined {
		if parsed.rules[d.name] != nil {
			fault(d, errDuplicate)
			continue
		}
		rules, wrong := newRules(us.vocabulary, all).applyAll(us.vocabulary, d.words, all)
		switch {
		case spaced(d.name):
			wrong = append(wrong, ErrUserName)
		case rules != nil && (len(parsed.rules) >= MaxUsers || parsed.memory > MaxMemory || len(d.name) > MaxRules || rules.tooLong()):
			wrong = append(wrong, errTooLarge)
		}
		for _, err := range wrong {
			fault(d, err)
		}
		if len(wrong) == 0 {
			parsed.rules[d.name] = rules
			parsed.memory += rules.cost + 2*len(d.name)
		} else {
			parsed.rules[d.name] = noRules // the name may not occur again
		}
	}
	return parsed
}

// Replace replaces all users by those of a file: users that are not in it are deleted, and if
// default is not in it, default gets its initial rules. It returns the users that were deleted or
// have other rules. The caller closes their clients.
func (us *Users) Replace(parsed *Parsed) (changed []*User) {
	us.change.Lock()
	defer us.change.Unlock()
	us.memory.Store(int64(parsed.memory))
	if parsed.rules[DefaultUser] == nil {
		r := us.defaultRules()
		parsed.rules[DefaultUser] = r
		us.memory.Add(int64(r.cost))
	}
	// Only the holder of change writes byName, and comparing all rules takes long.
	for name, u := range us.byName {
		if next := parsed.rules[name]; next == nil || !next.equal(u.Rules()) {
			changed = append(changed, u)
		}
	}
	byName := make(map[string]*User, len(parsed.rules))
	for name := range parsed.rules {
		if byName[name] = us.byName[name]; byName[name] == nil {
			byName[name] = &User{Name: name}
		}
	}
	for name, u := range byName {
		u.rules.Store(parsed.rules[name])
	}
	us.mu.Lock()
	defer us.mu.Unlock()
	for name, u := range us.byName {
		if byName[name] == nil {
			us.end(u)
		}
	}
	us.byName = byName
	us.closings.Add(1)
	return changed
}

// AddDefault adds the user default to a file that does not define it: with all permissions and that
// password, or without a password if it is "".
func (us *Users) AddDefault(parsed *Parsed, password string) {
	if parsed.rules[DefaultUser] == nil {
		r := us.defaultRules().withPassword(password)
		parsed.rules[DefaultUser] = r
		parsed.memory += r.cost
	}
}
