// Package syntax parses the syntax lines of commands and writes them as COMMAND DOCS shows them. A
// syntax line describes the arguments of a command. The package does not depend on any command.
package syntax

import (
	"strings"

	"github.com/cellserver/cellserver/resp"
)

// Argument is one element of the syntax of a command, as COMMAND DOCS describes it. Token is the
// literal word before the argument, or the argument itself if Kind is pure-token; "" if there is
// none. Sub has the parts of a block or the alternatives of a choice.
type Argument struct {
	Name     string
	Kind     string // the kind: string, integer, key, pattern, pure-token, oneof or block
	Token    string
	Optional bool
	Multiple bool
	Sub      []Argument
}

// Parse parses the syntax line of an entry of the command table. `[...]` is optional, `<a | b>` or
// a bar inside brackets is a choice, words in upper case are tokens, and a trailing `[name ...]`
// says that the argument before it may be repeated. redis-cli makes its hints from the result, so
// hints and documentation cannot differ.
func Parse(syntax string) []Argument {
	p := parser{words: Words(syntax)}
	return p.sequence("")
}

// Words splits the syntax line s into words. Each of the marks [ ] < > | is a word of its own.
func Words(s string) []string {
	for _, mark := range []string{"[", "]", "<", ">", "|"} {
		s = strings.ReplaceAll(s, mark, " "+mark+" ")
	}
	return strings.Fields(s)
}

type parser struct {
	words []string
}

func (p *parser) next() (word string) {
	if len(p.words) == 0 {
		return ""
	}
	word, p.words = p.words[0], p.words[1:]
	return word
}

func (p *parser) peek() string {
	if len(p.words) == 0 {
		return ""
	}
	return p.words[0]
}

// sequence parses the arguments up to the word closing, or up to the end. If there is a bar among
// them, the result is a single argument, which is the choice between the parts on both sides of the
// bar.
func (p *parser) sequence(closing string) []Argument {
	var alternatives [][]Argument
	var current []Argument
	for {
		switch word := p.next(); word {
		case closing, "":
			if alternatives == nil {
				return current
			}
			return []Argument{choice(append(alternatives, current))}
		case "|":
			alternatives = append(alternatives, current)
			current = nil
		case "[":
			current = p.optional(current)
		case "<":
			current = append(current, group(p.sequence(">")))
		case "...":
			for i := range current {
				current[i].Multiple = true
			}
		default:
			current = append(current, p.word(word))
		}
	}
}

// optional parses an optional argument after its bracket, and returns before with it. If it only
// repeats the last argument of before, it sets Multiple of that argument instead.
func (p *parser) optional(before []Argument) []Argument {
	inside := group(p.sequence("]"))
	if n := len(before); n > 0 && inside.Multiple && inside.Name == before[n-1].Name {
		before[n-1].Multiple = true
		return before
	}
	inside.Optional = true
	return append(before, inside)
}

// word returns the argument that begins with word: a name, or a token with the value that may
// follow it.
func (p *parser) word(word string) Argument {
	if !isToken(word) {
		return Argument{Name: word, Kind: kindOf(word)}
	}
	if next := p.peek(); next != "" && !isToken(next) && !strings.ContainsAny(next, "[]<>|.") {
		p.next()
		return Argument{Name: next, Kind: kindOf(next), Token: word}
	}
	return Argument{Name: strings.ToLower(word), Kind: "pure-token", Token: word}
}

// isToken reports whether word is literal, which means that it is in upper case.
func isToken(word string) bool {
	return word == strings.ToUpper(word) && word != strings.ToLower(word)
}

// kindOf returns the probable kind of the argument called name: key, pattern, integer or, for any
// other name, string.
func kindOf(name string) string {
	switch {
	case name == "key" || name == "newkey":
		return "key"
	case name == "pattern":
		return "pattern"
	}
	for _, n := range []string{"count", "cursor", "index", "period", "quantity", "max_burst", "limit", "window", "capacity", "seconds", "milliseconds", "numkeys", "lease", "client-id", "protover"} {
		if name == n {
			return "integer"
		}
	}
	return "string"
}

// group combines args into one argument: a block, unless there is only one.
func group(args []Argument) Argument {
	if len(args) == 1 {
		return args[0]
	}
	return Argument{Name: "block", Kind: "block", Sub: args}
}

func choice(alternatives [][]Argument) Argument {
	a := Argument{Name: "choice", Kind: "oneof"}
	for _, alt := range alternatives {
		a.Sub = append(a.Sub, group(alt))
	}
	return a
}

// Write writes args to w in the form of COMMAND DOCS.
func Write(w *resp.Writer, args []Argument) {
	w.Array(len(args))
	for _, a := range args {
		a.write(w)
	}
}

func (a *Argument) write(w *resp.Writer) {
	var flags []string
	if a.Optional {
		flags = append(flags, "optional")
	}
	if a.Multiple {
		flags = append(flags, "multiple")
	}
	display := a.Kind != "oneof" && a.Kind != "block" && a.Kind != "pure-token"
	fields := 2
	for _, present := range []bool{display, a.Token != "", len(flags) > 0, len(a.Sub) > 0} {
		if present {
			fields++
		}
	}
	w.Map(fields)
	pair := func(name, value string) {
		w.BulkString(name)
		w.BulkString(value)
	}
	pair("name", a.Name)
	pair("type", a.Kind)
	if display {
		pair("display_text", a.Name)
	}
	if a.Token != "" {
		pair("token", a.Token)
	}
	if len(flags) > 0 {
		w.BulkString("flags")
		w.Array(len(flags))
		for _, f := range flags {
			w.Status(f)
		}
	}
	if len(a.Sub) > 0 {
		w.BulkString("arguments")
		Write(w, a.Sub)
	}
}
