package acl

import (
	"slices"
	"strings"
)

// apply applies one rule to the selector. why is the reason if the rule is wrong, and "" on
// success.
func (s *Selector) apply(v Vocabulary, rule string) (why string) {
	switch strings.ToLower(rule) {
	case "":
	case "allkeys", "~*":
		s.allKeys, s.keys = true, nil
	case "resetkeys":
		s.allKeys, s.keys = false, nil
	case "allchannels", "&*":
		s.allChannels, s.channels = true, nil
	case "resetchannels":
		s.allChannels, s.channels = false, nil
	case "allcommands", "+@all":
		s.allowAll(true)
	case "nocommands", "-@all":
		s.allowAll(false)
	default:
		return s.applyPattern(v, rule)
	}
	return ""
}

// applyPattern does what apply does, for rules that begin with a special character. Any other rule
// is a syntax error.
func (s *Selector) applyPattern(v Vocabulary, rule string) (why string) {
	rest := rule[1:]
	switch rule[0] {
	case '~':
		return s.addKeys(rest, Read|Write)
	case '%':
		access, text, ok := keyAccess(rest)
		if !ok {
			return whySyntax
		}
		return s.addKeys(text, access)
	case '&':
		return s.addChannel(rest)
	case '+', '-':
		if category, ok := strings.CutPrefix(rest, "@"); ok {
			return s.applyCategory(v, rule[0] == '+', strings.ToLower(category))
		}
		return s.applyCommand(v, rule[0] == '+', rest)
	}
	return whySyntax
}

// keyAccess parses rest, a rule such as %R~pattern, %W~pattern or %RW~pattern without its first
// character. It returns the access that the letters give, and the pattern as text. ok is false if
// rest is no such rule.
func keyAccess(rest string) (access Access, text string, ok bool) {
	letters, text, found := strings.Cut(rest, "~")
	for _, letter := range strings.ToUpper(letters) {
		switch {
		case letter == 'R' && access&Read == 0:
			access |= Read
		case letter == 'W' && access&Write == 0:
			access |= Write
		default:
			return 0, "", false
		}
	}
	return access, text, found && access != 0
}

// SplitWords splits a line of a file into words. Only ASCII spaces, which names and patterns cannot
// contain, separate words. Other Unicode spaces are part of a word.
func SplitWords(line string) []string {
	return strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n\v\f\r", r) })
}

// spaced reports whether text, a name, a pattern or an argument, contains a character that would
// end it in a file: a space or a NUL.
func spaced(text string) bool { return strings.ContainsAny(text, " \t\n\v\f\r\x00") }

func (s *Selector) addKeys(text string, access Access) (why string) {
	switch at := slices.IndexFunc(s.keys, func(p pattern) bool { return p.text == text }); {
	case s.allKeys:
		return whyAllKeys
	case spaced(text):
		return whySyntax
	case at >= 0:
		s.keys[at].access |= access
	case len(s.keys) >= maxList:
		return whyTooMany
	default:
		s.keys = append(s.keys, compile(text, access))
	}
	return ""
}

func (s *Selector) addChannel(text string) (why string) {
	switch {
	case s.allChannels:
		return whyAllChannels
	case spaced(text):
		return whySyntax
	case slices.ContainsFunc(s.channels, func(p pattern) bool { return p.text == text }):
	case len(s.channels) >= maxList:
		return whyTooMany
	default:
		s.channels = append(s.channels, compile(text, 0))
	}
	return ""
}

// applyCategory implements the rule +@name if allow is true, and otherwise -@name. A category of
// Redis to which no command of this server belongs is only recorded.
func (s *Selector) applyCategory(v Vocabulary, allow bool, name string) (why string) {
	ids, known := v.Category(name)
	if !known && !redisCategories[name] {
		return whyUnknown
	}
	for _, id := range ids {
		s.allow(v, id, allow)
	}
	return s.addRule(allow, "@"+name)
}

// applyCommand implements the rules +command, -command, +container|subcommand,
// -container|subcommand and +command|argument. A command of Redis that this server does not have is
// only recorded, since user files of a Redis name it.
func (s *Selector) applyCommand(v Vocabulary, allow bool, name string) (why string) {
	name = strings.ToLower(name)
	if id, known := v.Command(name); known {
		s.allow(v, id, allow)
	} else if _, known := redisCommands[name]; !known {
		at := strings.LastIndexByte(name, '|')
		if !allow || at < 0 {
			return whyUnknown
		}
		if why := s.allowFirstArg(v, name[:at], name[at+1:]); why != "" {
			return why
		}
	}
	return s.addRule(allow, name)
}

// allowFirstArg implements the rule +command|argument. why is the reason if the rule is wrong, and
// "" on success.
func (s *Selector) allowFirstArg(v Vocabulary, command, argument string) (why string) {
	id, ours := v.Command(command)
	container, known := redisCommands[command]
	switch {
	case !ours && !known:
		return whyUnknown
	case strings.Contains(command, "|"):
		return whyFirstArg
	case argument == "" || spaced(argument):
		return whySyntax
	case ours && v.Subcommands(id) != nil, !ours && container:
		return whyUnknown
	case ours && !slices.Contains(s.firstArgs[id], argument):
		s.firstArgs[id] = append(s.firstArgs[id], argument)
	}
	return ""
}
