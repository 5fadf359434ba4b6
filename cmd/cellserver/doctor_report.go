package main

import (
	"fmt"
	"io"
	"strings"
)

// writeFindings writes the report as text. It omits empty parts, and replaces characters that are
// not printable.
func writeFindings(w io.Writer, o *outcome) error {
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
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	_, err := io.WriteString(w, strings.Map(printable, b.String()))
	return err
}
