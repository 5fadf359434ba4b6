// Package reference writes the man page and the completion scripts of the program. The scripts are
// for bash, zsh and fish. All of them come from a [Program], which package main makes from the
// table of options and the manual of its commands, so nothing here names an option or a command.
package reference

import (
	"slices"
	"strings"
	"time"
)

// Program is what there is to know of the program.
type Program struct {
	Version string
	// Date is when the program was published, or zero.
	Date     time.Time
	Options  []Option
	Commands []Command
	// Topics are the further words that help explains: names of options and commands.
	Topics []string
}

// Option is an option of the server, or of a command.
type Option struct {
	// Name is the name without dashes. One letter has one dash, and others have two.
	Name string
	// Hint stands for the value: yes|no, bytes. It is empty if the option takes no value.
	Hint string
	// Default is the value of an option that is not given, or "".
	Default string
	// Text says what the option does.
	Text string
}

// Command is a word that the program takes instead of options of the server.
type Command struct {
	Name string
	// Usage is the lines that show how it is called, without "usage: ".
	Usage string
	// Words are what its first argument may be, if that chooses what it does.
	Words []string
	// Text says what it does, in paragraphs.
	Text string
	// Flags are its own options.
	Flags []Option
	// Configures tells whether it takes those of the server too.
	Configures bool
}

// NewCommand reads what the manual says of a command: "usage: " and how it is called, an empty
// line, paragraphs, and lines of flags that begin with two blanks and a dash.
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
		case len(c.Flags) > 0 && strings.HasPrefix(line, "   "): // a flag goes on
			last := &c.Flags[len(c.Flags)-1]
			last.Text += " " + strings.TrimSpace(line)
		default:
			text.WriteString(line)
		}
	}
	c.Text = strings.TrimSpace(text.String())
	return c
}

// calls are the ways in which the command is called, each on one line.
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

// newFlag reads `fix   cut the end` and `db n   only this database`.
func newFlag(line string) Option {
	call, text, _ := strings.Cut(strings.TrimSpace(line), "  ")
	name, hint, _ := strings.Cut(call, " ")
	return Option{Name: name, Hint: hint, Text: strings.TrimSpace(text)}
}

// dashed is the option as it is written.
func (o *Option) dashed() string {
	if len(o.Name) == 1 {
		return "-" + o.Name
	}
	return "--" + o.Name
}

// flags returns all options that c takes.
func (p *Program) flags(c *Command) []Option {
	if c.Configures {
		return slices.Concat(c.Flags, p.Options)
	}
	return c.Flags
}

// choices returns the values of an option that has few, and nil otherwise.
func (o *Option) choices() []string {
	values := strings.Split(o.Hint, "|")
	if len(values) < 2 || strings.ContainsAny(o.Hint, " []<>") {
		return nil
	}
	return values
}

// isPath tells whether the value is a path, by its hint or by the name: all paths of options of
// the server have one of these endings.
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

// brief is the first sentence of a text, without its full stop.
func brief(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	sentence, _, _ := strings.Cut(text, ". ")
	return strings.TrimSuffix(sentence, ".")
}

// names returns the names of options with their dashes.
func names(options []Option) []string {
	list := make([]string, len(options))
	for i := range options {
		list[i] = options[i].dashed()
	}
	return list
}

// commandNames returns the words that the program takes first.
func (p *Program) commandNames() []string {
	list := make([]string, len(p.Commands))
	for i, c := range p.Commands {
		list[i] = c.Name
	}
	return list
}
