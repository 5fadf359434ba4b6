package acl

import (
	"bytes"
	"slices"
	"strings"
)

// Selector is one set of permissions of a user. A call is permitted if one selector of the user
// permits the whole call. A selector does not change after a user has it.
type Selector struct {
	commands    bits
	allCommands bool // whether every command is permitted; set by Rules.seal
	// base says whether the rules about commands begin with +@all; otherwise they begin with -@all.
	base bool
	// firstArgs has, by the number of a command that is not permitted otherwise, the first
	// arguments with which it may be called, as in +select|0.
	firstArgs map[int][]string
	// rules are the rules about commands after base, in their order, without those that a later
	// rule has overridden.
	rules       []string
	keys        []pattern
	allKeys     bool
	channels    []pattern
	allChannels bool
}

// clone returns a deep copy of the selector, which the caller may change.
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

// selectorCost, patternCost and ruleCost are about the memory, in bytes, of a selector, of a
// pattern and of a rule, without their text.
const selectorCost, patternCost, ruleCost = 320, 64, 16

// cost returns about how many bytes of memory the selector takes.
func (s *Selector) cost() int {
	n := selectorCost + 8*len(s.commands)
	for _, patterns := range [][]pattern{s.keys, s.channels} {
		for i := range patterns {
			n += patternCost + 2*len(patterns[i].text)
		}
	}
	for _, rule := range s.rules {
		n += 2 * (ruleCost + len(rule)) // each rule counts twice, because it may be in firstArgs, too
	}
	return n
}

// equal reports whether s and o have the same rules in the same order.
func (s *Selector) equal(o *Selector) bool {
	same := func(a, b pattern) bool { return a.text == b.text && a.access == b.access }
	return s.base == o.base && s.allKeys == o.allKeys && s.allChannels == o.allChannels && slices.Equal(s.rules, o.rules) &&
		slices.EqualFunc(s.keys, o.keys, same) && slices.EqualFunc(s.channels, o.channels, same)
}

// unrestricted reports whether the selector permits every command, key and channel.
func (s *Selector) unrestricted() bool { return s.allCommands && s.allKeys && s.allChannels }

// Command reports whether the command with that number may be called. first is the first argument
// after the name of the command or subcommand; nil if there is none.
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

// Key reports whether a command may access key in the way that access says. If access is 0, it
// reports whether the user may know whether the key exists.
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

// AllKeys reports whether the selector permits to read and write every key.
func (s *Selector) AllKeys() bool { return s.allKeys }

// Channel reports whether the channel called name may be published to or subscribed to.
func (s *Selector) Channel(name []byte) bool {
	return s.allChannels || slices.ContainsFunc(s.channels, func(p pattern) bool { return p.matches(name) })
}

// ChannelPattern reports whether the pattern text may be subscribed to. It must be equal to one of
// the selector's patterns: the sets of channels that the patterns match are not compared.
func (s *Selector) ChannelPattern(text []byte) bool {
	return s.allChannels || slices.ContainsFunc(s.channels, func(p pattern) bool { return p.text == string(text) })
}

// allowAll implements the rule +@all if allow is true, and otherwise -@all.
func (s *Selector) allowAll(allow bool) {
	s.commands.fill(allow)
	s.base, s.rules = allow, nil
	clear(s.firstArgs)
}

// allow permits the command with that number and its subcommands if allow is true, and otherwise
// forbids them.
func (s *Selector) allow(v Vocabulary, id int, allow bool) {
	for _, id := range append([]int{id}, v.Subcommands(id)...) {
		s.commands.set(id, allow)
		delete(s.firstArgs, id)
	}
}

// addRule adds the rule +name if allow is true, and otherwise -name, to the texts of the rules. It
// replaces earlier rules about the same command or category, and about subcommands of the command.
// why is the reason if there are too many rules, and "" on success.
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

// CommandRules returns rules that are equivalent to the selector's rules about commands.
func (s *Selector) CommandRules() string {
	return strings.Join(append([]string{sign(s.base) + "@all"}, s.rules...), " ")
}

// KeyRules returns rules that are equivalent to the selector's rules about keys, without one that
// resets the patterns; "" if there are none.
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

// ChannelRules returns rules that are equivalent to the selector's rules about channels, without
// one that resets the patterns; "" if there are none.
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

// text returns rules that are equivalent to the whole selector.
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
