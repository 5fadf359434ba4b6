package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// grid is a table: a heading and rows with the same number of cells.
type grid struct {
	title string
	head  []string
	rows  [][]string
}

func orUnknown(server string) string {
	if server == "" {
		return "a server"
	}
	return server
}

func write(w io.Writer, grids []grid, markdown bool) error {
	if markdown {
		return writeMarkdown(w, grids)
	}
	return writeTables(w, grids)
}

func writeTables(w io.Writer, grids []grid) error {
	var b strings.Builder
	for i, g := range grids {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(g.title + "\n")
		g.align(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// align writes the cells in columns: the first left-aligned, figures right-aligned.
func (g *grid) align(b *strings.Builder) {
	widths := make([]int, len(g.head))
	lines := append([][]string{g.head}, g.rows...)
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range lines {
		var text strings.Builder
		for i, cell := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if g.isFigure(i) {
				text.WriteString("  " + pad + cell)
			} else {
				text.WriteString("  " + cell + pad)
			}
		}
		b.WriteString(strings.TrimRight(text.String(), " ") + "\n")
	}
}

// isFigure reports whether a column holds numbers.
func (g *grid) isFigure(column int) bool {
	switch g.head[column] {
	case "target", "command", "limit", "check", "when":
		return false
	}
	return true
}

func writeMarkdown(w io.Writer, grids []grid) error {
	var b strings.Builder
	for _, g := range grids {
		fmt.Fprintf(&b, "%s:\n\n|", g.title)
		for _, cell := range g.head {
			b.WriteString(" " + cell + " |")
		}
		b.WriteString("\n|")
		for i := range g.head {
			if g.isFigure(i) {
				b.WriteString("---:|")
			} else {
				b.WriteString("---|")
			}
		}
		for _, row := range g.rows {
			b.WriteString("\n|")
			for _, cell := range row {
				b.WriteString(" " + strings.ReplaceAll(cell, "|", `\|`) + " |")
			}
		}
		b.WriteString("\n\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
