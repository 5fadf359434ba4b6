package main

import (
	"fmt"
	"io"
	"strings"
)

// writeFindings writes an opinion for a person.
func writeFindings(w io.Writer, o *opinion) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", o.title)
	for _, part := range []struct {
		title string
		lines []string
	}{
		{"Moves", o.moves}, {"Does not move", o.loses}, {"Worth knowing", o.looks}, {"To do", o.todo},
	} {
		if len(part.lines) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n", part.title)
		for _, line := range part.lines {
			fmt.Fprintf(&b, "  %s\n", strings.Map(printable, line))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printable keeps what a server says from moving the cursor of whoever reads it.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return '?'
	}
	return r
}
