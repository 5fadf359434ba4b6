package top

import (
	"github.com/charmbracelet/x/ansi"

	"github.com/cellserver/cellserver/report"
)

// layout is how a snapshot is drawn.
type layout struct {
	width, height int // height 0 is as much as there is to say
	styled        bool
	choice        Choice
	focus, cursor int    // the table that has the cursor, and its row; focus -1 is none
	note          string // the text beside the name of the server
	lost          bool   // the server does not answer: nothing is current
}

// The tables, from top to bottom.
const (
	keysTable = iota
	groupsTable
	changesTable
	tables
)

// style dresses text, if there is a terminal.
func (l *layout) style(s ansi.Style, text string) string {
	if !l.styled {
		return text
	}
	return s.Styled(text)
}

func bold() ansi.Style  { return ansi.NewStyle().Bold() }
func faint() ansi.Style { return ansi.NewStyle().Faint() }

// tone is the colour of a verdict, which its sign says too.
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
