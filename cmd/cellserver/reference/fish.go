package reference

import (
	"fmt"
	"io"
	"strings"
)

// Fish writes the completion script for fish.
func Fish(w io.Writer, p *Program) error {
	var b strings.Builder
	b.WriteString("# Completion of cellserver for fish. It is generated: cellserver completion fish\n\n")
	all := strings.Join(p.commandNames(), " ")
	for i := range p.Commands {
		c := &p.Commands[i]
		fmt.Fprintf(&b, "complete -c cellserver -n __fish_use_subcommand -a %s -d %s\n", c.Name, fishQuoted(brief(c.Text)))
	}
	for i := range p.Commands {
		c := &p.Commands[i]
		within := "__fish_seen_subcommand_from " + c.Name
		fishOptions(&b, within, p.flags(c))
		if len(c.Words) > 0 {
			first := within + "; and not __fish_seen_subcommand_from " + strings.Join(c.Words, " ")
			fmt.Fprintf(&b, "complete -c cellserver -n %s -f -a %s\n", fishQuoted(first), fishQuoted(strings.Join(c.Words, " ")))
		}
		if c.Name == "help" {
			fmt.Fprintf(&b, "complete -c cellserver -n %s -f -a %s\n", fishQuoted(within), fishQuoted(strings.Join(p.Topics, " ")))
		}
	}
	fishOptions(&b, "not __fish_seen_subcommand_from "+all, p.Options)
	_, err := io.WriteString(w, b.String())
	return err
}

// fishOptions writes a line for each option. fish offers an option while the command condition
// succeeds.
func fishOptions(b *strings.Builder, condition string, options []Option) {
	for i := range options {
		o := &options[i]
		value := ""
		switch choices := o.choices(); {
		case o.Hint == "":
		case choices != nil:
			value = " -x -a " + fishQuoted(strings.Join(choices, " "))
		case o.isPath():
			value = " -r"
		default:
			value = " -x"
		}
		kind := "-l"
		if len(o.Name) == 1 {
			kind = "-s"
		}
		fmt.Fprintf(b, "complete -c cellserver -n %s %s %s%s -d %s\n", fishQuoted(condition), kind, o.Name, value, fishQuoted(brief(o.Text)))
	}
}

func fishQuoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
