package top

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/cellserver/cellserver/report"
)

type column struct {
	title string
	width int // width of the column in characters; 0 means the width that is left
	right bool
	least int // minimum width of the terminal for which the column is shown
}

type row struct {
	cells []string
	named bool // whether the verdict is about the key or group of the row
}

// table draws a title, the heads of the columns and at most room rows. If there are no rows it
// draws the text empty instead. which is the number of the table; if it has the cursor, the row of
// the cursor is among those drawn.
func (l *layout) table(which int, title, empty string, columns []column, rows []row, room int) []string {
	heading := title
	if l.focus == which {
		heading = "▸ " + title
	}
	lines := []string{l.style(bold(), heading)}
	if len(rows) == 0 {
		return append(lines, l.style(faint(), "  "+empty))
	}
	left := l.width - 2
	for _, c := range columns {
		if c.width > 0 && l.width >= c.least {
			left -= c.width + 2
		}
	}
	line := func(cells []string) string {
		var b strings.Builder
		for i, c := range columns {
			if l.width < c.least {
				continue
			}
			if c.width == 0 {
				c.width = max(8, left-2)
			}
			b.WriteString(fit(cells[i], c.width, c.right) + "  ")
		}
		return b.String()
	}
	heads := make([]string, len(columns))
	for i, c := range columns {
		heads[i] = c.title
	}
	lines = append(lines, l.style(faint(), "  "+line(heads)))
	first := 0
	if l.focus == which {
		first = max(0, min(l.cursor-room+1, len(rows)-room))
	}
	for i, r := range rows[first:min(len(rows), first+max(0, room))] {
		text := "  " + line(r.cells)
		if r.named {
			text = l.style(ansi.NewStyle().ForegroundColor(ansi.Yellow), "▶ "+line(r.cells))
		}
		if l.focus == which && first+i == l.cursor {
			text = l.style(ansi.NewStyle().Reverse(true), ansi.Strip(text))
		}
		lines = append(lines, text)
	}
	return lines
}

func (l *layout) keys(s *Snapshot, room int) []string {
	v := &s.Overview.Verdict
	rows := make([]row, len(s.Keys))
	for i, k := range s.Keys {
		key, ratio := shown(k.Key), 0.0
		if k.DB > 0 {
			key += " (db " + amount(float64(k.DB)) + ")"
		}
		if k.CallsS > 0 {
			ratio = min(1, k.DeniedS/k.CallsS)
		}
		rows[i] = row{
			[]string{key, amount(k.DeniedS), percent(ratio), percent(k.Share), k.Limit, callers(k.Clients), clock(k.Since, s.Overview.At)},
			v.Key != nil && *v.Key == k.Key && v.DB == k.DB,
		}
	}
	title := "Keys denied most"
	if l.choice.Calls {
		title = "Keys called most"
	}
	if l.choice.Group != "" {
		title += " in " + shown(l.choice.Group)
	}
	if f := s.Overview.Fleet; f != nil {
		title += " · at least " + amount(float64(f.Now.KeysDenied)) + " denied in 5 min · " + sum(f)
	} else {
		title += " · about " + amount(float64(s.Overview.Now.KeysDenied)) + " denied in 5 min"
	}
	return l.table(keysTable, title, "none", []column{
		{"key", 0, false, 0},
		{"denied/s", 8, true, 0},
		{"of calls", 8, true, 0},
		{"share", 6, true, 90},
		{"limit", 10, true, 60},
		{"called by", 28, false, 100},
		{"since", 11, true, 70},
	}, rows, room)
}

func (l *layout) groups(s *Snapshot, room int) []string {
	v := &s.Overview.Verdict
	rows := make([]row, len(s.Groups))
	for i, g := range s.Groups {
		topShare := "–"
		if g.KeysDenied > 0 {
			topShare = percent(g.TopShare)
		}
		rows[i] = row{
			[]string{groupName(g.Group), amount(g.CallsS), percent(g.DeniedRatio), bars(known(g.Spark), 20, max(0.02, slices.Max(append(g.Spark, 0)))), amount(float64(g.KeysDenied)), topShare, percent(g.NearRatio), g.Limit},
			v.Group != nil && *v.Group == g.Group,
		}
	}
	title := "Groups"
	if f := s.Overview.Fleet; f != nil {
		title += " · " + sum(f)
	}
	return l.table(groupsTable, title, "none has been called", []column{
		{"group", 0, false, 0},
		{"calls/s", 8, true, 0},
		{"denied", 7, true, 0},
		{"1 h", 20, false, 100},
		{"keys denied", 11, true, 70},
		{"top key", 7, true, 80},
		{"near limit", 10, true, 80},
		{"limit", 10, true, 60},
	}, rows, room)
}

// known returns spark with 0 in place of -1, which stands for an unknown value.
func known(spark []float64) []float64 {
	all := slices.Clone(spark)
	for i := range all {
		all[i] = max(0, all[i])
	}
	return all
}

func (l *layout) changes(s *Snapshot, room int) []string {
	newest := byTime(s.Changes)
	rows := make([]row, len(newest))
	for i, c := range newest {
		rows[i] = row{
			[]string{c.Mark, clock(c.At, s.Overview.At), shown(c.Text), around(c.Around), shown(c.By)},
			s.Overview.Verdict.Change != 0 && s.Overview.Verdict.Change == c.ID,
		}
	}
	return l.table(changesTable, "Changes", "none", []column{
		{"", 2, false, 0}, {"time", 11, false, 0}, {"what", 0, false, 0}, {"calls/s before and after", 24, true, 110}, {"by", 24, false, 80},
	}, rows, room)
}

// around returns the rates of calls before and after a change as text; "" if a is nil.
func around(a *report.Around) string {
	if a == nil {
		return ""
	}
	text := amount(a.Before.CallsS) + " → " + amount(a.After.CallsS)
	if a.Group != nil {
		text += " of " + shown(*a.Group)
	}
	return text
}

// byTime returns a copy of changes with the newest first. Changes of one time are in the order of
// their IDs, the highest first.
func byTime(changes []report.Change) []report.Change {
	newest := slices.Clone(changes)
	slices.SortFunc(newest, func(a, b report.Change) int {
		if a.At != b.At {
			return int(max(-1, min(1, b.At-a.At)))
		}
		return int(max(-1, min(1, b.ID-a.ID)))
	})
	return newest
}
