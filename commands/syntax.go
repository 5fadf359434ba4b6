package commands

import (
	"strings"

	"github.com/cellserver/cellserver/resp"
)

// argument is one element of a command's syntax, as COMMAND DOCS describes it.
type argument struct {
	name     string
	kind     string // string, integer, key, pure-token, oneof, block
	token    string
	optional bool
	multiple bool
	sub      []argument
}

// parseSyntax reads the syntax line of a table entry: `[...]` is optional,
// `<a | b>` or a bar inside brackets is a choice, upper-case words are tokens and a
// trailing `[name ...]` repeats what is before it. redis-cli draws its hints from
// the result, so that the line and the hints cannot differ.
func parseSyntax(syntax string) []argument {
	p := syntaxParser{words: syntaxWords(syntax)}
	return p.sequence("")
}

// syntaxWords splits a syntax line into words and the marks [ ] < > |.
func syntaxWords(s string) []string {
	for _, mark := range []string{"[", "]", "<", ">", "|"} {
		s = strings.ReplaceAll(s, mark, " "+mark+" ")
	}
	return strings.Fields(s)
}

type syntaxParser struct {
	words []string
}

func (p *syntaxParser) next() (word string) {
	if len(p.words) == 0 {
		return ""
	}
	word, p.words = p.words[0], p.words[1:]
	return word
}

func (p *syntaxParser) peek() string {
	if len(p.words) == 0 {
		return ""
	}
	return p.words[0]
}

// sequence reads up to the closing mark: alternatives if there is a bar.
func (p *syntaxParser) sequence(closing string) []argument {
	var alternatives [][]argument
	var current []argument
	for {
		switch word := p.next(); word {
		case closing, "":
			if alternatives == nil {
				return current
			}
			return []argument{choice(append(alternatives, current))}
		case "|":
			alternatives = append(alternatives, current)
			current = nil
		case "[":
			current = p.optional(current)
		case "<":
			current = append(current, group(p.sequence(">")))
		case "...":
			for i := range current {
				current[i].multiple = true
			}
		default:
			current = append(current, p.word(word))
		}
	}
}

// optional reads a bracket. One that repeats the argument before it makes that
// one multiple instead.
func (p *syntaxParser) optional(before []argument) []argument {
	inside := group(p.sequence("]"))
	if n := len(before); n > 0 && inside.multiple && inside.name == before[n-1].name {
		before[n-1].multiple = true
		return before
	}
	inside.optional = true
	return append(before, inside)
}

// word reads a name, or a token with the one value that follows it.
func (p *syntaxParser) word(word string) argument {
	if !isToken(word) {
		return argument{name: word, kind: kindOf(word)}
	}
	if next := p.peek(); next != "" && !isToken(next) && !strings.ContainsAny(next, "[]<>|.") {
		p.next()
		return argument{name: next, kind: kindOf(next), token: word}
	}
	return argument{name: strings.ToLower(word), kind: "pure-token", token: word}
}

// isToken reports whether the word stands for itself.
func isToken(word string) bool {
	return word == strings.ToUpper(word) && word != strings.ToLower(word)
}

// kindOf guesses the type of an argument from its name.
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

// group makes one argument of a sequence.
func group(args []argument) argument {
	if len(args) == 1 {
		return args[0]
	}
	return argument{name: "block", kind: "block", sub: args}
}

func choice(alternatives [][]argument) argument {
	a := argument{name: "choice", kind: "oneof"}
	for _, alt := range alternatives {
		a.sub = append(a.sub, group(alt))
	}
	return a
}

// writeArguments writes arguments in the shape of COMMAND DOCS.
func writeArguments(w *resp.Writer, args []argument) {
	w.Array(len(args))
	for _, a := range args {
		a.write(w)
	}
}

func (a *argument) write(w *resp.Writer) {
	var flags []string
	if a.optional {
		flags = append(flags, "optional")
	}
	if a.multiple {
		flags = append(flags, "multiple")
	}
	display := a.kind != "oneof" && a.kind != "block" && a.kind != "pure-token"
	fields := 2
	for _, present := range []bool{display, a.token != "", len(flags) > 0, len(a.sub) > 0} {
		if present {
			fields++
		}
	}
	w.Map(fields)
	pair := func(name, value string) {
		w.BulkString(name)
		w.BulkString(value)
	}
	pair("name", a.name)
	pair("type", a.kind)
	if display {
		pair("display_text", a.name)
	}
	if a.token != "" {
		pair("token", a.token)
	}
	if len(flags) > 0 {
		w.BulkString("flags")
		w.Array(len(flags))
		for _, f := range flags {
			w.Status(f)
		}
	}
	if len(a.sub) > 0 {
		w.BulkString("arguments")
		writeArguments(w, a.sub)
	}
}
