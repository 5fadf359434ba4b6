// Package script runs plain-text conversations with a Redis server: commands and their expected
// replies. [Parse] reads a [Script], and [Run] runs one [Section] of it against a [Target] and
// returns every [Difference].
//
// A script is a list of lines:
//
//	# a comment
//	== title            a section: it begins without keys and without connections
//	> SET k "v\x00"     a command, with the quoting of redis-cli
//	< "v"               the reply that the command must have; see notation.go
//	    continued       a line that begins with a space continues the one before
//	a> PING             the same on another connection, which is called a
//	>> "PING\r\n"       bytes that are sent as they are
//	>3 PING, <2 "x"     only on a connection with RESP3, or with RESP2
//	< closed            the server closes the connection
//	@ proto 3           run the section in this protocol only
//	@ config name value the server must have been started with this option
//	@ string k v 5s     create a plain string, here with a time to live
//	@ list k            create a key of a type that limiters refuse
//	@ +1.5s             let this time pass
//	@ 1700000000000000000   set the clock to this Unix nanosecond
//	@ blocked 2         wait until 2 clients are blocked
//	@ timers 1          wait until 1 timer is set, if the clock stands still
//
// A command without a line for its reply must get no reply. `${name}` is the value that a pattern
// has bound by `as name`, and `${100*x}` is x repeated a hundred times.
package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Script is a parsed script. Name is its name in messages.
type Script struct {
	Name string
	// File is the path of the script, or "" if it was not read from a file.
	File     string
	Sections []*Section
}

// Section is a part of a script that runs independently of other sections.
type Section struct {
	Title string
	// Protocols are the protocol versions in which the section is run.
	Protocols []int
	// Config has the options, as names and values, with which the server must have been started.
	Config [][2]string
	Steps  []Step
}

// Step is one line of a section. Line is its number in the file.
type Step struct {
	Line int
	Kind Kind
	// Conn is the name of the connection. "" is the name of a connection, too.
	Conn string
	// Proto restricts the step to connections with that protocol version. 0 is no restriction.
	Proto int
	// Text is the text of the line after the mark: a command, bytes, a pattern or a directive.
	Text string
}

// Kind says what a step does.
type Kind uint8

// These are the values of [Kind].
const (
	Send Kind = iota
	SendRaw
	Expect
	Directive
)

// Parse parses the text of a script. name is the name of the script in messages. The error names
// the line that is not valid.
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

// joinLines returns the lines of text without comments and empty lines. It joins each line with
// those that continue it.
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

// Section returns the section with the given title, or nil if there is none.
func (s *Script) Section(title string) *Section {
	i := slices.IndexFunc(s.Sections, func(c *Section) bool { return c.Title == title })
	if i < 0 {
		return nil
	}
	return s.Sections[i]
}

// RunName returns the name of a test that runs the section in the protocol version proto.
func (s *Section) RunName(proto int) string { return s.Title + "/RESP" + strconv.Itoa(proto) }

// parseStep parses a line of the form `[conn]mark[proto] text`, or a directive.
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

// check returns an error if the text of the step is malformed, so that a mistake is found before
// the script runs. It replaces every variable by 1.
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

// settle applies a directive that concerns the whole section, and returns false. For any other
// directive step is true: the directive is a step of the section.
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

// directive is a parsed directive that the runner executes as a step.
type directive struct {
	word    string // the kind of directive: string, list, blocked, timers, advance or set
	key     string
	value   string
	ttl     time.Duration // the time to live of a string, or the duration for advance
	instant int64
	count   int // number of blocked clients, or of timers
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

// expand returns text in which each `${name}` is replaced by the result of value, and each
// `${n*text}` by text repeated n times. It returns an error if value reports that there is no such
// name.
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

// Commands returns the words of every command in the script that expects a reply, in any protocol.
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

// answered reports whether the next step on the connection of step i expects a reply.
func (s *Section) answered(i int) bool {
	for _, next := range s.Steps[i+1:] {
		if next.Kind != Directive && next.Conn == s.Steps[i].Conn {
			return next.Kind == Expect
		}
	}
	return false
}
