package compat_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/script"
)

// groupList is the file with the list of all groups of commands.
const groupList = "../commands/groups.go"

// groupNames returns the packages of the groups, in the order of [commands.Groups].
func groupNames(t *testing.T) (names []string) {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), groupList, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	ast.Inspect(tree, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Group" {
			if x, ok := s.X.(*ast.Ident); ok && x.Name != "command" {
				names = append(names, x.Name)
			}
		}
		return true
	})
	require.Len(t, names, len(commands.Groups()), "each group is an element of the form package.Group()")
	return names
}

// TestEveryGroupCanBeLeftOut: without any one of the groups of commands the server answers
// everything else as it does with all of them. Of the sections it plays a fifth, all where long
// tests are wanted, and few in a short run, which looks for races.
func TestEveryGroupCanBeLeftOut(t *testing.T) {
	scripts := loadScripts(t, "cellserver")
	part := 5
	switch {
	case effort.Long():
		part = 1
	case testing.Short():
		part = 50
	}
	for i, name := range groupNames(t) {
		t.Run(name, func(t *testing.T) {
			without := func() []command.Group { return slices.Delete(commands.Groups(), i, i+1) }
			out := newLeftOut(commands.Groups()[i])
			played := 0
			for _, s := range scripts {
				for k, section := range s.Sections {
					proto := section.Protocols[(i+k)%len(section.Protocols)]
					if proto == 3 && out.names["hello"] {
						proto = section.Protocols[0]
					}
					if out.isUsedBy(section, proto) {
						continue
					}
					if played++; (played+i)%part != 0 {
						continue
					}
					t.Run(s.Name+"/"+section.RunName(proto), func(t *testing.T) {
						t.Parallel()
						inproc.PlaySection(t, s, section, proto, without)
					})
				}
			}
			t.Logf("%d sections do without %s", played, name)
			require.Greater(t, played, 20)
		})
	}
}

// leftOut is what a server without a group lacks.
type leftOut struct {
	table *command.Table // of all groups
	names map[string]bool
}

func newLeftOut(g command.Group) *leftOut {
	o := &leftOut{table: commands.NewTable(), names: map[string]bool{}}
	for _, c := range g.Commands {
		o.names[c.Name] = true
	}
	return o
}

// lacks reports whether a call of these words is of a command that is left out.
func (o *leftOut) lacks(words []string) bool {
	c := o.table.Lookup([]byte(words[0]))
	if c == nil {
		return false
	}
	if len(words) > 1 {
		if sub := c.Subcommand([]byte(words[1])); sub != nil && o.names[sub.Name] {
			return true
		}
	}
	return o.names[c.Name]
}

// commandWord matches what may be the name of a command in a text.
var commandWord = regexp.MustCompile(`[A-Za-z]+(\.[A-Za-z]+)?`)

// isMentioned reports whether a text has the name of a command that is left out.
func (o *leftOut) isMentioned(text string) bool {
	return slices.ContainsFunc(commandWord.FindAllString(text, -1), func(word string) bool { return o.names[strings.ToLower(word)] })
}

// isUsedBy reports whether a section calls a command that is left out, or may call one: in a
// script, in bytes that are sent as they are, or by what the runner does for a section. So
// does one that asks what commands there are, and expects it among them.
func (o *leftOut) isUsedBy(s *script.Section, proto int) bool {
	lists := slices.ContainsFunc(s.Steps, func(step script.Step) bool {
		c := o.table.Lookup([]byte(firstWord(step.Text)))
		return step.Kind == script.Send && c != nil && (c.Name == "command" || c.Name == "acl")
	})
	var raw strings.Builder
	for _, step := range s.Steps {
		used := lists && o.isMentioned(step.Text)
		switch step.Kind {
		case script.Directive:
			used = firstWord(step.Text) == "blocked" && o.names["info"]
		case script.SendRaw:
			bytes, err := strconv.Unquote(step.Text)
			used = err != nil && o.isMentioned(step.Text)
			raw.WriteString(bytes)
		case script.Send:
			words := append([]string{firstWord(step.Text)}, strings.Fields(step.Text)[1:]...)
			c := o.table.Lookup([]byte(words[0]))
			used = used || o.lacks(words) || c != nil && c.Categories&command.CatScripting != 0 && o.isMentioned(step.Text)
		}
		if used {
			return true
		}
	}
	return o.isMentioned(raw.String()) || proto == 3 && o.names["hello"] ||
		slices.ContainsFunc(s.Config, func(option [2]string) bool { return o.isMentioned(option[1]) })
}

// firstWord returns the first word of a line, without quotes.
func firstWord(text string) string {
	word := strings.Fields(text)[0]
	if plain, err := strconv.Unquote(word); err == nil {
		return plain
	}
	return word
}
