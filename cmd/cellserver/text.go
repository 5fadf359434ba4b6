package main

import (
	"strings"
	"unicode"
)

// quoted quotes a value for a shell, if that is necessary.
func quoted(value string) string {
	if value != "" && !strings.ContainsAny(value, "[]{}! \t\"'\\$&|;<>()*?`#~%") {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

// printable replaces, by a question mark, characters in the output of a server that would move the
// cursor of the terminal or change the direction of the text. It keeps line breaks.
func printable(r rune) rune {
	if r == '\n' || unicode.IsPrint(r) {
		return r
	}
	return '?'
}
