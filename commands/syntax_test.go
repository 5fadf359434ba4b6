package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/syntax"
)

// spell formats arguments compactly, so that a tree fits a line: name:kind, =TOKEN, ? for
// optional, + for several, parentheses around parts.
func spell(args []syntax.Argument) string {
	var words []string
	for _, a := range args {
		w := a.Name + ":" + a.Kind
		if a.Token != "" {
			w += "=" + a.Token
		}
		if a.Optional {
			w += "?"
		}
		if a.Multiple {
			w += "+"
		}
		if len(a.Sub) > 0 {
			w += "(" + spell(a.Sub) + ")"
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

func TestParseSyntax(t *testing.T) {
	for _, c := range []struct{ syntax, want string }{
		{"", ""},
		{"key", "key:key"},
		{"key [key ...]", "key:key+"},
		{"key seconds [NX | XX]", "key:key seconds:integer choice:oneof?(nx:pure-token=NX xx:pure-token=XX)"},
		{"cursor [MATCH pattern] [COUNT count]", "cursor:integer pattern:pattern=MATCH? count:integer=COUNT?"},
		{"<ON | OFF>", "choice:oneof(on:pure-token=ON off:pure-token=OFF)"},
		{"[BUCKETS slots [EVEN]]", "block:block?(slots:string=BUCKETS even:pure-token=EVEN?)"},
		{"[ANCHOR <FIRST | KEY | unix-time>]", "block:block?(anchor:pure-token=ANCHOR choice:oneof(first:pure-token=FIRST key:pure-token=KEY unix-time:string))"},
		{"parameter value [parameter value ...]", "parameter:string value:string block:block?(parameter:string+ value:string+)"},
		{"key max_burst count period [quantity]", "key:key max_burst:integer count:integer period:integer quantity:integer?"},
	} {
		require.Equal(t, c.want, spell(syntax.Parse(c.syntax)), c.syntax)
	}
}

// TestSyntaxOfEveryCommand: each token of a syntax line appears in COMMAND DOCS, and every
// bracket is closed.
func TestSyntaxOfEveryCommand(t *testing.T) {
	for _, cmd := range NewTable().All() {
		s := cmd.Syntax
		require.Equal(t, strings.Count(s, "["), strings.Count(s, "]"), cmd.Name)
		require.Equal(t, strings.Count(s, "<"), strings.Count(s, ">"), cmd.Name)
		spelt := spell(syntax.Parse(s))
		for _, word := range syntax.Words(s) {
			if word != "..." && !strings.Contains("[]<>|", word) {
				require.Contains(t, spelt, word, "%s: %s", cmd.Name, s)
			}
		}
	}
}

// TestSyntaxAgreesWithArity: a command has a variable number of arguments exactly if its syntax
// has a bracket, and at least as many as there are outside of brackets.
func TestSyntaxAgreesWithArity(t *testing.T) {
	odd := map[string]string{
		"quit":        "takes and ignores any words, as Redis does",
		"command":     "is a container that also runs by itself",
		"cl.throttle": "counts its words itself, as the module does",
		"rl.throttle": "is cl.throttle",
		"rl.multi":    "says what is wrong with its clauses, not only that words are missing",
		"client|kill": "has an old form of one word and a new one of any number of pairs",
	}
	for _, cmd := range NewTable().All() {
		if cmd.Run == nil || odd[cmd.Name] != "" {
			continue
		}
		require.Equal(t, strings.Contains(cmd.Syntax, "["), cmd.Arity < 0, "%s: arity %d, syntax %q", cmd.Name, cmd.Arity, cmd.Syntax)
		least := len(strings.Split(cmd.Name, "|"))
		for _, a := range syntax.Parse(cmd.Syntax) {
			if a.Optional {
				continue
			}
			least += leastOf(&a)
		}
		require.Equal(t, least, max(cmd.Arity, -cmd.Arity), "%s: arity %d, syntax %q", cmd.Name, cmd.Arity, cmd.Syntax)
	}
}

// leastOf returns the least number of words that an argument takes.
func leastOf(a *syntax.Argument) int {
	n := 0
	switch a.Kind {
	case "oneof":
		for i := range a.Sub {
			if alt := leastOf(&a.Sub[i]); n == 0 || alt < n {
				n = alt
			}
		}
	case "block":
		for i := range a.Sub {
			if !a.Sub[i].Optional {
				n += leastOf(&a.Sub[i])
			}
		}
	case "pure-token":
		n = 1
	default:
		if n = 1; a.Token != "" {
			n = 2
		}
	}
	return n
}
