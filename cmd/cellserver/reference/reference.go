// Package reference writes the man page and the completion scripts of the program. The scripts are
// for bash, zsh and fish. All of them come from a [Program], which package main creates from the
// table of options and the manual of its commands, so this package names no option and no command.
package reference

import (
	"slices"
	"strings"
	"time"
)

// Program describes a program to the functions of this package.
type Program struct {
	Version string
	// Date is the date of the release, or the zero time.
	Date     time.Time
	Options  []Option
	Commands []Command
	// Topics are further words that help explains: names of options and commands.
	Topics []string
}

// Option is an option of the server, or of a command.
type Option struct {
	// Name is the name of the option without dashes. A name of one letter has one dash in front,
	// and any other name two.
	Name string
	// Hint is the placeholder for the value: yes|no, bytes. It is empty if the option takes no
	// value.
	Hint string
	// Default is the default value of the option, or "".
	Default string
	// Text says what the option does.
	Text string
}

// Command is a subcommand of the program.
type Command struct {
	Name string
	// Usage has the lines of the usage text, without "usage: ".
	Usage string
	// Words are the possible first arguments, if the first argument selects what the command does.
	Words []string
	// Text says what the command does, in paragraphs.
	Text string
	// Flags are the options of the command itself.
	Flags []Option
	// Configures says that the command also takes the server's options.
	Configures bool
}

// NewCommand parses the manual text of a command: "usage: " and the usage, an empty line,
// paragraphs, and lines of flags that begin with two blanks and a dash.
func NewCommand(name, manual string) Command {
	usage, body, _ := strings.Cut(manual, "\n\n")
	c := Command{Name: name, Usage: strings.TrimPrefix(usage, "usage: ")}
	if calls := c.calls(); len(calls) > 1 {
		for _, call := range calls {
			c.Words = append(c.Words, strings.Fields(call)[2])
		}
	}
	var text strings.Builder
	for line := range strings.Lines(body) {
		switch {
		case strings.HasPrefix(line, "  -"):
			c.Flags = append(c.Flags, newFlag(strings.TrimLeft(line, " -")))
		case len(c.Flags) > 0 && strings.HasPrefix(line, "   "): // the line continues the text of a flag
			last := &c.Flags[len(c.Flags)-1]
			last.Text += " " + strings.TrimSpace(line)
		default:
			text.WriteString(line)
		}
	}
	c.Text = strings.TrimSpace(text.String())
	return c
}

// calls returns the usages of the command, each on one line. A line that does not begin with the
// name of the program continues the one before it.
func (c *Command) calls() (list []string) {
	for line := range strings.Lines(c.Usage) {
		line = strings.Join(strings.Fields(line), " ")
		if len(list) == 0 || strings.HasPrefix(line, "cellserver ") {
			list = append(list, line)
		} else {
			list[len(list)-1] += " " + line
		}
	}
	return list
}

// newFlag parses `fix   cut the end` and `db n   only this database`.
func newFlag(line string) Option {
	call, text, _ := strings.Cut(strings.TrimSpace(line), "  ")
	name, hint, _ := strings.Cut(call, " ")
	return Option{Name: name, Hint: hint, Text: strings.TrimSpace(text)}
}

// dashed returns the name of the option with its dashes: one before a single letter, and two before
// a longer name.
func (o *Option) dashed() string {
	if len(o.Name) == 1 {
		return "-" + o.Name
	}
	return "--" + o.Name
}

// flags returns the options of c, with the server's options if c takes these, too.
func (p *Program) flags(c *Command) []Option {
	if c.Configures {
		return slices.Concat(c.Flags, p.Options)
	}
	return c.Flags
}

// choices returns the possible values of an option if these are few, otherwise nil.
func (o *Option) choices() []string {
	values := strings.Split(o.Hint, "|")
	if len(values) < 2 || strings.ContainsAny(o.Hint, " []<>") {
		return nil
	}
	return values
}

// isPath reports whether the value is a path, according to the hint or to the name: the names of
// all options of the server that are paths have one of these endings.
func (o *Option) isPath() bool {
	if o.Hint == "file" {
		return true
	}
	for _, ending := range []string{"file", "dir", "socket"} {
		if strings.HasSuffix(o.Name, ending) {
			return true
		}
	}
	return false
}

// brief returns the first sentence of a text without its full stop.
func brief(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	sentence, _, _ := strings.Cut(text, ". ")
	return strings.TrimSuffix(sentence, ".")
}

func names(options []Option) []string {
	list := make([]string, len(options))
	for i := range options {
		list[i] = options[i].dashed()
	}
	return list
}

// commandNames returns the possible first arguments of the program.
func (p *Program) commandNames() []string {
	list := make([]string, len(p.Commands))
	for i, c := range p.Commands {
		list[i] = c.Name
	}
	return list
}
