package top

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/cellserver/cellserver/report"
)

// Text formats a snapshot as plain lines of the given width, for a pipe or a log.
func Text(s *Snapshot, width int) string {
	return strings.Join(draw(s, layout{width: width, focus: -1, choice: Choice{Span: 300}}), "\n") + "\n"
}

func draw(s *Snapshot, l layout) []string {
	lines := l.head(s)
	lines = append(lines, l.checks(s)...)
	if l.height == 0 || l.height >= 20 {
		lines = append(lines, l.chart(s)...)
	}
	bodies := [tables]func(*Snapshot, int) []string{l.keys, l.groups, l.changes}
	room := l.share(s, l.height-len(lines)-1)
	for i, body := range bodies {
		lines = append(lines, "")
		lines = append(lines, body(s, room[i])...)
	}
	for i := range lines {
		lines[i] = strings.TrimRight(ansi.Truncate(lines[i], l.width, "…"), " ")
	}
	if l.height > 0 && len(lines) > l.height {
		lines = lines[:l.height]
	}
	return lines
}

// share returns the number of rows for each table. rows is the number of lines for all tables,
// including their headings and blank lines. Rows that one table does not need go to others. If the
// text has no height, a table gets at most 20 rows, and the table of changes 10.
func (l *layout) share(s *Snapshot, rows int) (room [tables]int) {
	want := [tables]int{max(1, len(s.Keys)), max(1, len(s.Groups)), max(1, len(s.Changes))}
	if l.height == 0 {
		return [tables]int{min(want[0], 20), min(want[1], 20), min(want[2], 10)}
	}
	for left := rows - 3*tables + 1; left > 0; {
		given := false
		for i := range room {
			if left > 0 && room[i] < want[i] {
				room[i]++
				left--
				given = true
			}
		}
		if !given {
			break
		}
	}
	return room
}

func (l *layout) head(s *Snapshot) []string {
	o, v := &s.Overview, &s.Overview.Verdict
	name := "cellserver " + shown(o.Server.ID) + "  " + o.Server.Version + "  up " + uptime(o.Server.UptimeS)
	lines := []string{l.style(faint(), name+"  "+l.note)}
	if l.lost {
		lines[0] = l.style(bold().ForegroundColor(ansi.Red), name+"  "+l.note)
	}
	mark, word := sign(v)
	lines = append(lines, l.style(tone(v), mark+" "+shown(v.Title))+l.style(faint(), "  ("+word+")"))
	for _, line := range strings.Split(ansi.Wrap(shown(v.Text), max(20, l.width-2), ""), "\n") {
		lines = append(lines, "  "+line)
	}
	n := o.Now
	if f := o.Fleet; f != nil {
		is := f.Now
		n.CallsS, n.DeniedRatio, n.UsualRatio, n.ErrorRatio, n.P99us = is.CallsS, is.DeniedRatio, -1, is.ErrorRatio, is.P99us
		n.Clients, n.Repeats, n.Reservations = is.Clients, is.Repeats, is.Reservations
		lines = append(lines, "", "  "+l.style(faint(), "The verdict and the checks are about this server. The figures are the "+sum(f)+"."))
		for i := range o.Servers {
			if other := &o.Servers[i]; other.Sick && !other.Self {
				lines = append(lines, l.style(bold().ForegroundColor(ansi.Red), "  ✕ "+shown(other.Address)+" is sick: "+shown(other.Verdict)))
			}
		}
	}
	denied := percent(n.DeniedRatio) + " denied"
	if n.UsualRatio >= 0 {
		denied += " (usually " + percent(n.UsualRatio) + ")"
	}
	if n.ErrorRatio > 0 {
		denied += ", " + percent(n.ErrorRatio) + " errors"
	}
	memory := mebibytes(n.Memory)
	if n.MaxMemory > 0 {
		memory += " of " + mebibytes(n.MaxMemory)
	}
	lines = append(lines, "", "  "+strings.Join([]string{
		l.style(bold(), amount(n.CallsS)+" calls/s"), l.style(bold(), denied), "p99 " + millis(n.P99us),
		plural(n.Clients, "client"), memory,
	}, "   "))
	if text := settled(&n); text != "" {
		lines = append(lines, "  In 5 min: "+text)
	}
	return lines
}

// sum describes the servers over which f is the sum.
func sum(f *report.Fleet) string {
	text := "sum of " + plural(int64(f.Servers), "server")
	if f.Missing > 0 {
		text += fmt.Sprintf(", %d missing", f.Missing)
	}
	if f.Late > 0 {
		text += fmt.Sprintf(", %d late", f.Late)
	}
	if f.Error != "" {
		text += " (" + shown(f.Error) + ")"
	}
	return text
}

// settled returns the numbers of reservations and of repetitions in n as text; "" if there were none.
func settled(n *report.Now) string {
	var all, parts []string
	for _, c := range n.Reservations {
		parts = append(parts, amount(float64(c.N))+" "+shown(c.Name))
	}
	if parts != nil {
		all = append(all, "reservations "+strings.Join(parts, ", "))
	}
	if n.Repeats > 0 {
		all = append(all, plural(n.Repeats, "repeated call"))
	}
	return strings.Join(all, "   ")
}

// checks returns one line if all checks pass, and otherwise lists those that fail.
func (l *layout) checks(s *Snapshot) []string {
	good := 0
	var bad []string
	for _, c := range s.Overview.Checks {
		if c.OK {
			good++
			continue
		}
		bad = append(bad, l.style(bold().ForegroundColor(ansi.Red), "  ✕ "+c.Name+": "+shown(c.Text))+" ("+c.Bound+")")
	}
	answer := "✓ no"
	switch { // a check may fail for a short time, or for a reason that is not the verdict
	case s.Overview.Verdict.Sick:
		answer = "✕ yes"
	case len(bad) > 0:
		answer = "! no"
	}
	return append([]string{fmt.Sprintf("  Is the limiter sick? %s, %d of %d checks pass", answer, good, len(s.Overview.Checks))}, bad...)
}

func (l *layout) chart(s *Snapshot) []string {
	h := &s.History
	if len(h.Allowed) == 0 || h.Step == 0 {
		return nil
	}
	all, ratio, top := make([]float64, len(h.Allowed)), make([]float64, len(h.Allowed)), 0.0
	for i := range all {
		sum := float64(h.Allowed[i] + h.Denied[i])
		all[i] = sum / float64(h.Step)
		top = max(top, all[i])
		if sum > 0 {
			ratio[i] = float64(h.Denied[i]) / sum
		}
	}
	const label = 24
	width := l.width - label - 2
	if width < 10 {
		return nil
	}
	return []string{
		"",
		"  " + fit("calls/s, at most "+amount(top), label, false) + bars(all, width, top),
		"  " + fit("denied, at most "+percent(slices.Max(ratio)), label, false) + l.style(ansi.NewStyle().ForegroundColor(ansi.Yellow), bars(ratio, width, max(0.01, slices.Max(ratio)))),
	}
}
