package acl

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// MaxFile is the maximum size, in bytes, of a file of users.
const MaxFile = 64 << 20

// Parsed has the users of a parsed ACL file, or of the user lines of a configuration. memory is
// about the memory that they take in bytes.
type Parsed struct {
	rules  map[string]*Rules
	memory int
}

// Rules returns the rules of the user called name; nil if the file does not define that user.
func (p *Parsed) Rules(name string) *Rules { return p.rules[name] }

// HavePasswords reports whether at least one of the users has a password.
func (p *Parsed) HavePasswords() bool {
	for _, r := range p.rules {
		if len(r.Passwords()) > 0 {
			return true
		}
	}
	return false
}

// List returns the users as lines of an ACL file, sorted by name.
func (p *Parsed) List() []string {
	lines := make([]string, 0, len(p.rules))
	for _, name := range slices.Sorted(maps.Keys(p.rules)) {
		lines = append(lines, "user "+name+" "+p.rules[name].Text())
	}
	return lines
}

// definition is the line of a file that defines a user.
type definition struct {
	at    int // number of the line, from 1, or the index of a Line
	name  string
	words []string
}

// ParseFile parses content, the content of the ACL file at path: lines `user name rule ...`, empty
// lines, and lines that begin with '#'. The error has the first maxFaults faults with their lines,
// and the number of the others. ParseFile changes no user; for that pass the result to
// [Users.Replace].
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

// Line is a user line of a configuration file.
type Line struct {
	Where string   // file and number of the line, for faults
	Words []string // name of the user, and its rules
	// Included says that another configuration file includes the file of the line.
	Included bool
}

// ParseLines parses the user lines of a configuration. If the main file has a line for a user, that
// line replaces the lines for the user in included files, because CONFIG REWRITE cannot change
// included files. The error has the first maxFaults faults, and the number of the others. ParseLines
// changes no user.
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

// errDuplicate is the error for a file that defines a user twice.
var errDuplicate = errors.New("Duplicate user found. A user can only be defined once in config files") //nolint:staticcheck // Redis' words

// parse returns the users that the lines in defined define. It calls fault for each fault of a
// line. A user whose line has a fault gets noRules.
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
			parsed.rules[d.name] = noRules // noRules makes a second line for the user a fault
		}
	}
	return parsed
}

// Replace replaces all users by those in parsed. Users that are not in parsed are deleted. If the
// user default is not in parsed, it gets its initial rules. Replace returns the users that were
// deleted or have other rules now. The caller has to close their clients.
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

// AddDefault adds the user default to parsed, unless parsed has it. The user gets all permissions
// and the given password; if password is "", it needs none.
func (us *Users) AddDefault(parsed *Parsed, password string) {
	if parsed.rules[DefaultUser] == nil {
		r := us.defaultRules().withPassword(password)
		parsed.rules[DefaultUser] = r
		parsed.memory += r.cost
	}
}
