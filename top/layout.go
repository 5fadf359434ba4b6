package top

import (
	"github.com/charmbracelet/x/ansi"

	"github.com/cellserver/cellserver/report"
)

// layout determines how a snapshot is drawn.
type layout struct {
	width, height int // size of the terminal in characters; height 0 means no limit
	styled        bool
	choice        Choice
	focus, cursor int    // index of the table with the cursor, and of the row in it; focus is -1 if no table has the cursor
	note          string // the text next to the name of the server
	lost          bool   // whether the server does not answer, so that the figures are old
}

// These are the tables, from top to bottom.
const (
	keysTable = iota
	groupsTable
	changesTable
	tables
)

// style applies a style to text if the output is a terminal.
func (l *layout) style(s ansi.Style, text string) string {
	if !l.styled {
		return text
	}
	return s.Styled(text)
}

func bold() ansi.Style  { return ansi.NewStyle().Bold() }
func faint() ansi.Style { return ansi.NewStyle().Faint() }

// tone returns the style for the sign and the title of a verdict. The colour only repeats the
// meaning of the sign.
func tone(v *report.Verdict) ansi.Style {
	switch mark, _ := sign(v); mark {
	case "✕":
		return bold().ForegroundColor(ansi.Red)
	case "✓":
		return bold().ForegroundColor(ansi.Green)
	case "▲", "!":
		return bold().ForegroundColor(ansi.Yellow)
	}
	return bold()
}
