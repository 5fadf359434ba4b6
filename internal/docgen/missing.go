package docgen

import (
	"fmt"
	"strings"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/internal/missing"
)

// missingTable is what the README says of the parts of Redis that are not here: first
// the commands that are unknown, then those that are known and do nothing.
func missingTable(t *command.Table) string {
	var b strings.Builder
	b.WriteString("\n| not there | commands | status | why |\n|---|---|---|---|\n")
	for _, g := range missing.FromRedis {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", g.What, listed(g.Commands), g.Status, g.Why)
	}
	b.WriteString("\n| there, but | commands |\n|---|---|\n")
	fmt.Fprintf(&b, "| answered with an error only | %s |\n", listed(namesOf(t, (*command.Command).OnlyFails)))
	fmt.Fprintf(&b, "| always empty | %s |\n\n", listed(namesOf(t, (*command.Command).AlwaysEmpty)))
	return b.String()
}

// namesOf returns the names of the commands of which is says so.
func namesOf(t *command.Table, is func(*command.Command) bool) (names []string) {
	for _, c := range t.All() {
		if is(c) {
			names = append(names, c.Name)
		}
	}
	return names
}

// listed writes names as people do. Subcommands share the name of their container:
// XINFO GROUPS/HELP.
func listed(names []string) string {
	var b strings.Builder
	last := ""
	for _, name := range names {
		container, sub, isSub := strings.Cut(name, "|")
		switch {
		case isSub && container == last:
			b.WriteString("/" + strings.ToUpper(sub))
			continue
		case b.Len() > 0:
			b.WriteString(", ")
		}
		b.WriteString(display(name))
		last = ""
		if isSub {
			last = container
		}
	}
	return b.String()
}
