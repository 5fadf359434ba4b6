package acl

import (
	"bytes"
	"slices"
	"strings"
)

// Selector is one set of permissions of a user. A call is permitted if one selector permits all of
// it. A published selector is immutable.
type Selector struct {
	commands    bits
	allCommands bool // set by seal
	// base is the initial permission: +@all or -@all.
	base bool
	// firstArgs are the first arguments with which a command may be called that is not permitted
	// otherwise: +select|0.
	firstArgs map[int][]string
	// rules are the rules about commands in their order, without those that a later rule has
	// overridden.
	rules       []string
	keys        []pattern
	allKeys     bool
	channels    []pattern
	allChannels bool
}

// clone returns a copy of the selector, to be modified.
func (s *Selector) clone() *Selector {
	c := *s
	c.commands = slices.Clone(s.commands)
	c.firstArgs = make(map[int][]string, len(s.firstArgs))
	for id, args := range s.firstArgs {
		c.firstArgs[id] = slices.Clone(args)
	}
	c.rules, c.keys, c.channels = slices.Clone(s.rules), slices.Clone(s.keys), slices.Clone(s.channels)
	return &c
}

// selectorCost, patternCost and ruleCost are about the memory of a selector, a pattern and a rule
// in addition to their text.
const selectorCost, patternCost, ruleCost = 320, 64, 16

// cost returns about how many bytes the selector takes.
func (s *Selector) cost() int {
	n := selectorCost + 8*len(s.commands)
	for _, patterns := range [][]pattern{s.keys, s.channels} {
		for i := range patterns {
			n += patternCost + 2*len(patterns[i].text)
		}
	}
	for _, rule := range s.rules {
		n += 2 * (ruleCost + len(rule)) // it may be a first argument, too
	}
	return n
}

// equal reports whether two selectors have the same rules in the same order.
func (s *Selector) equal(o *Selector) bool {
	same := func(a, b pattern) bool { return a.text == b.text && a.access == b.access }
	return s.base == o.base && s.allKeys == o.allKeys && s.allChannels == o.allChannels && slices.Equal(s.rules, o.rules) &&
		slices.EqualFunc(s.keys, o.keys, same) && slices.EqualFunc(s.channels, o.channels, same)
}

// unrestricted reports whether the selector permits everything.
func (s *Selector) unrestricted() bool { return s.allCommands && s.allKeys && s.allChannels }

// Command reports whether the command may be called. first is its first argument after the name of
// the subcommand, nil if there is none.
func (s *Selector) Command(id int, first []byte) bool {
	if s.allCommands || s.commands.has(id) {
		return true
	}
	if first == nil {
		return false
	}
	return slices.ContainsFunc(s.firstArgs[id], func(arg string) bool {
		return len(arg) == len(first) && bytes.EqualFold([]byte(arg), first)
	})
}

// Key reports whether a command may access a key in the given way. If access is 0, it reports
// whether the user may know of the key.
func (s *Selector) Key(key []byte, access Access) bool {
	if s.allKeys {
		return true
	}
	for i := range s.keys {
		if p := &s.keys[i]; p.access&access == access && p.matches(key) {
			return true
		}
	}
	return false
}

// AllKeys reports whether every key may be read and written.
func (s *Selector) AllKeys() bool { return s.allKeys }

// Channel reports whether a channel may be published to or subscribed to.
func (s *Selector) Channel(name []byte) bool {
	return s.allChannels || slices.ContainsFunc(s.channels, func(p pattern) bool { return p.matches(name) })
}

// ChannelPattern reports whether a pattern may be subscribed to. It has to be equal to one of the
// user's patterns: the sets of matching channels are not compared.
func (s *Selector) ChannelPattern(text []byte) bool {
	return s.allChannels || slices.ContainsFunc(s.channels, func(p pattern) bool { return p.text == string(text) })
}

// allowAll implements +@all and -@all.
func (s *Selector) allowAll(allow bool) {
	s.commands.fill(allow)
	s.base, s.rules = allow, nil
	clear(s.firstArgs)
}

// allow sets the bits of a command and its subcommands.
func (s *Selector) allow(v Vocabulary, id int, allow bool) {
	for _, id := range append([]int{id}, v.Subcommands(id)...) {
		s.commands.set(id, allow)
		delete(s.firstArgs, id)
	}
}

// addRule records a rule about commands, and returns why it is wrong, or "". The rule replaces
// earlier rules about the same command or category, and about subcommands of the command.
func (s *Selector) addRule(allow bool, name string) (why string) {
	s.rules = slices.DeleteFunc(s.rules, func(rule string) bool {
		rest, same := strings.CutPrefix(rule[1:], name)
		return same && (rest == "" || rest[0] == '|')
	})
	if len(s.rules) >= maxList {
		return whyTooMany
	}
	s.rules = append(s.rules, sign(allow)+name)
	return ""
}

func sign(allow bool) string {
	if allow {
		return "+"
	}
	return "-"
}

// CommandRules returns the rules about commands as equivalent text.
func (s *Selector) CommandRules() string {
	return strings.Join(append([]string{sign(s.base) + "@all"}, s.rules...), " ")
}

// KeyRules returns the patterns of keys as equivalent text, without the rule that resets them.
func (s *Selector) KeyRules() string {
	if s.allKeys {
		return "~*"
	}
	var text []string
	for i := range s.keys {
		text = append(text, s.keys[i].keyText())
	}
	return strings.Join(text, " ")
}

// ChannelRules returns the patterns of channels as equivalent text, without the rule that resets
// them.
func (s *Selector) ChannelRules() string {
	if s.allChannels {
		return "&*"
	}
	var text []string
	for _, p := range s.channels {
		text = append(text, "&"+p.text)
	}
	return strings.Join(text, " ")
}

// text returns the whole selector as equivalent rules.
func (s *Selector) text() string {
	var parts []string
	if keys := s.KeyRules(); keys != "" {
		parts = append(parts, keys)
	}
	if s.allChannels {
		parts = append(parts, "&*")
	} else if parts = append(parts, "resetchannels"); len(s.channels) > 0 {
		parts = append(parts, s.ChannelRules())
	}
	return strings.Join(append(parts, s.CommandRules()), " ")
}
