// Package script runs plain-text conversations with a Redis server: commands and their expected
// replies. [Parse] reads a [Script], and [Run] plays one [Section] of it against a [Target] and
// reports every [Difference].
//
// A script is a list of lines:
//
//	# a comment
//	== title            a section: it starts without keys and without connections
//	> SET k "v\x00"     a command, with the quoting of redis-cli
//	< "v"               the reply it must get, in the notation of notation.go
//	    continued       a line that begins with a space continues the one before
//	a> PING             the same on another connection, which is called a
//	>> "PING\r\n"       bytes, sent as they are
//	>3 PING, <2 "x"     only on a connection that speaks RESP3, or RESP2
//	< closed            the server closes the connection
//	@ proto 3           run the section in that protocol only
//	@ config name value the server must have been started with this option
//	@ string k v 5s     make a plain string, here with a time to live
//	@ list k            make a key that no limiter can work on
//	@ +1.5s             time passes
//	@ 1700000000000000000   time is that unix nanosecond
//	@ blocked 2         wait until 2 clients are blocked
//	@ timers 1          wait until 1 timer is set, where time stands still
//
// A command without a reply line must get no reply. `${name}` is the value that a pattern has bound
// (`int as name`), and `${100*x}` is x repeated a hundred times.
package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Script is a parsed file.
type Script struct {
	Name string
	// File is the path of the script; "" if it was not read from a file.
	File     string
	Sections []*Section
}

// Section is an independent conversation.
type Section struct {
	Title string
	// Protocols are the protocols to run it in.
	Protocols []int
	// Config are options with which the server must have been started.
	Config [][2]string
	Steps  []Step
}

// Step is one line.
type Step struct {
	Line int
	Kind Kind
	// Conn is the name of the connection; "" is one as well.
	Conn string
	// Proto restricts the step to connections of that protocol unless it is 0.
	Proto int
	// Text is the rest of the line: a command, bytes, a pattern or a directive.
	Text string
}

// Kind is what a step does.
type Kind uint8

// The kinds of steps.
const (
	Send Kind = iota
	SendRaw
	Expect
	Directive
)

// Parse parses a script. name is used in messages.
func Parse(name, text string) (*Script, error) {
	s := &Script{Name: name}
	for _, l := range joinLines(text) {
		if err := s.addLine(l.text, l.number); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, l.number, err)
		}
	}
	return s, nil
}

type line struct {
	number int
	text   string
}

// joinLines removes comments and empty lines, and joins continued lines.
func joinLines(text string) (lines []line) {
	for i, l := range strings.Split(text, "\n") {
		l = strings.TrimRight(l, " \t\r")
		switch {
		case l == "" || l[0] == '#':
		case (l[0] == ' ' || l[0] == '\t') && len(lines) > 0:
			last := &lines[len(lines)-1]
			last.text += " " + strings.TrimLeft(l, " \t")
		default:
			lines = append(lines, line{i + 1, l})
		}
	}
	return lines
}

func (s *Script) addLine(text string, number int) error {
	if title, ok := strings.CutPrefix(text, "== "); ok {
		if s.Section(title) != nil {
			return fmt.Errorf("there are two sections %q", title)
		}
		s.Sections = append(s.Sections, &Section{Title: title, Protocols: []int{2, 3}})
		return nil
	}
	if len(s.Sections) == 0 {
		return fmt.Errorf("a line before the first section: %q", text)
	}
	section := s.Sections[len(s.Sections)-1]
	step, err := parseStep(text)
	if err != nil {
		return err
	}
	step.Line = number
	if step.Kind == Directive {
		kept, err := section.settle(step.Text)
		if err != nil || !kept {
			return err
		}
	}
	section.Steps = append(section.Steps, step)
	return nil
}

// Section returns the section with that title, or nil.
func (s *Script) Section(title string) *Section {
	i := slices.IndexFunc(s.Sections, func(c *Section) bool { return c.Title == title })
	if i < 0 {
		return nil
	}
	return s.Sections[i]
}

// RunName returns the name of a test of the section in one protocol.
func (s *Section) RunName(proto int) string { return s.Title + "/RESP" + strconv.Itoa(proto) }

// parseStep parses `[conn]mark[proto] text`.
func parseStep(text string) (Step, error) {
	if rest, ok := strings.CutPrefix(text, "@ "); ok {
		return Step{Kind: Directive, Text: strings.TrimSpace(rest)}, nil
	}
	at := strings.IndexAny(text, "<>")
	if at < 0 || strings.ContainsAny(text[:at], " \t") {
		return Step{}, fmt.Errorf("neither a command nor a reply nor a directive: %q", text)
	}
	step := Step{Conn: text[:at]}
	mark, rest := text[at], text[at+1:]
	switch {
	case mark == '<':
		step.Kind = Expect
	case strings.HasPrefix(rest, ">"):
		step.Kind, rest = SendRaw, rest[1:]
	default:
		step.Kind = Send
	}
	if strings.HasPrefix(rest, "2 ") || strings.HasPrefix(rest, "3 ") {
		step.Proto, rest = int(rest[0]-'0'), rest[1:]
	}
	if !strings.HasPrefix(rest, " ") {
		return Step{}, fmt.Errorf("no space after the mark: %q", text)
	}
	step.Text = strings.TrimLeft(rest, " ")
	return step, step.check()
}

// check finds mistakes before a script runs: every variable counts as 1.
func (s *Step) check() error {
	text, err := expand(s.Text, func(string) (string, bool) { return "1", true })
	if err != nil {
		return err
	}
	if s.Kind == Expect {
		_, err = parsePattern(text)
		return err
	}
	_, err = splitWords(text)
	return err
}

// settle applies a directive about the whole section, or reports that the directive is a step.
func (s *Section) settle(text string) (step bool, err error) {
	words, err := splitWords(text)
	if err != nil {
		return false, err
	}
	switch words[0] {
	case "proto":
		if len(words) != 2 || words[1] != "2" && words[1] != "3" {
			return false, fmt.Errorf("proto takes 2 or 3: %q", text)
		}
		s.Protocols = []int{int(words[1][0] - '0')}
		return false, nil
	case "config":
		if len(words) != 3 {
			return false, fmt.Errorf("config takes a name and a value: %q", text)
		}
		s.Config = append(s.Config, [2]string{words[1], words[2]})
		return false, nil
	}
	_, err = parseDirective(words)
	return true, err
}

// directive is a parsed directive that is a step.
type directive struct {
	word    string // string, list, blocked, timers, advance, set
	key     string
	value   string
	ttl     time.Duration // also the duration of advance
	instant int64
	count   int // of blocked or timers
}

func parseDirective(words []string) (d directive, err error) {
	d.word = words[0]
	switch n := len(words); {
	case d.word == "string" && (n == 3 || n == 4):
		d.key, d.value = words[1], words[2]
		if n == 4 {
			d.ttl, err = time.ParseDuration(words[3])
		}
		return d, err
	case d.word == "list" && n == 2:
		d.key = words[1]
		return d, nil
	case (d.word == "blocked" || d.word == "timers") && n == 2:
		d.count, err = strconv.Atoi(words[1])
		return d, err
	case n == 1 && d.word[0] == '+':
		d.word = "advance"
		d.ttl, err = time.ParseDuration(words[0][1:])
		return d, err
	case n == 1:
		d.word = "set"
		d.instant, err = strconv.ParseInt(words[0], 10, 64)
		return d, err
	}
	return d, fmt.Errorf("no such directive: %q", strings.Join(words, " "))
}

// expand replaces every `${name}` by the result of value, and every `${n*text}` by text repeated n
// times.
func expand(text string, value func(name string) (string, bool)) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", fmt.Errorf("${%s is not closed", rest)
		}
		count, repeated, isRepeat := strings.Cut(name, "*")
		if isRepeat {
			n, err := strconv.Atoi(count)
			if err != nil || n < 0 || n > maxReply {
				return "", fmt.Errorf("${%s} repeats nothing", name)
			}
			b.WriteString(strings.Repeat(repeated, n))
		} else {
			v, ok := value(name)
			if !ok {
				return "", fmt.Errorf("nothing is called ${%s}", name)
			}
			b.WriteString(v)
		}
		text = after
	}
}

// Commands returns the arguments of every command that the script sends and expects a reply to, in
// any protocol.
func (s *Script) Commands() (all [][]string) {
	for _, section := range s.Sections {
		for i, step := range section.Steps {
			if step.Kind != Send || !section.answered(i) {
				continue
			}
			if words, err := splitWords(step.Text); err == nil {
				all = append(all, words)
			}
		}
	}
	return all
}

// answered reports whether the next step on the connection of step i is a reply.
func (s *Section) answered(i int) bool {
	for _, next := range s.Steps[i+1:] {
		if next.Kind != Directive && next.Conn == s.Steps[i].Conn {
			return next.Kind == Expect
		}
	}
	return false
}
