package main

import (
	"strings"
	"unicode"
)

// quoted writes a value as a shell takes it.
func quoted(value string) string {
	if value != "" && !strings.ContainsAny(value, "[]{}! \t\"'\\$&|;<>()*?`#~%") {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

// printable keeps what a server says from moving the cursor of whoever reads it, and from
// turning the direction of the text round.
func printable(r rune) rune {
	if r == '\n' || unicode.IsPrint(r) {
		return r
	}
	return '?'
}
