package top

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/report"
)

var start = time.Date(2026, 11, 23, 2, 47, 12, 0, time.UTC)

// many is a snapshot of a server with many keys, groups and changes with long names.
func many() Snapshot {
	s := Snapshot{Overview: report.Overview{At: start.UnixMilli(), Verdict: report.Verdict{
		Kind: report.Denials, Title: "The limiter works. More is denied than usual.", Text: strings.Repeat("Many words in a row. ", 12),
	}, Checks: []report.Check{{Name: "Memory", Text: "full"}}}}
	for i := range 40 {
		name := report.Key(strings.Repeat("キー", 30) + string(rune('a'+i)))
		s.Keys = append(s.Keys, report.DeniedKey{Key: name, DeniedS: float64(i), CallsS: 40})
		s.Groups = append(s.Groups, report.Group{Group: name, CallsS: 1e6})
		s.Changes = append(s.Changes, report.Change{ID: int64(i), At: start.UnixMilli() - int64(i)*1000, Mark: "AA", Text: string(name), By: string(name)})
	}
	s.History = report.History{Step: 1, Allowed: make([]int64, 300), Denied: make([]int64, 300)}
	return s
}

// asked returns a model that has received a snapshot.
func asked(t *testing.T, s Snapshot) Model {
	t.Helper()
	m := NewModel(nil, time.Second, func() time.Time { return start })
	return after(t, m, answered{s, nil, start, m.choice})
}

// after returns the model after it has received messages.
func after(t *testing.T, m Model, messages ...tea.Msg) Model {
	t.Helper()
	for _, msg := range messages {
		next, _ := m.Update(msg)
		var is bool
		m, is = next.(Model)
		require.True(t, is)
	}
	return m
}

// press returns the message for a key of the keyboard.
func press(key string) tea.Msg {
	special := map[string]rune{"tab": tea.KeyTab, "enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown}
	if code, is := special[key]; is {
		return tea.KeyPressMsg{Code: code}
	}
	return tea.KeyPressMsg{Code: rune(key[0]), Text: key}
}

// TestEveryTerminalIsFilledAndNotMore: the output has exactly the size of the terminal, wherever
// the cursor is.
func TestEveryTerminalIsFilledAndNotMore(t *testing.T) {
	effort.Alone(t)
	for _, s := range []Snapshot{many(), {}} {
		for width := 20; width < 220; width += 9 {
			for height := 4; height < 70; height += 3 {
				m := after(t, asked(t, s), tea.WindowSizeMsg{Width: width, Height: height}, press("tab"), press("down"))
				lines := m.lines()
				require.Len(t, lines, height, "%d x %d", width, height)
				for _, line := range lines {
					require.LessOrEqual(t, ansi.StringWidth(line), width, "%d x %d: %q", width, height, line)
				}
			}
		}
	}
}

// TestCursorStaysInSight: the row of the cursor is drawn, whether it is the first or the last.
func TestCursorStaysInSight(t *testing.T) {
	m := after(t, asked(t, many()), tea.WindowSizeMsg{Width: 100, Height: 40})
	reversed := func() int {
		return strings.Count(strings.Join(m.lines(), "\n"), ansi.NewStyle().Reverse(true).String())
	}
	for range 50 {
		require.Equal(t, 1, reversed(), "at row %d", m.cursor)
		m = after(t, m, press("down"))
	}
	require.Equal(t, 39, m.cursor)
	m = after(t, m, press("tab"))
	require.Zero(t, m.cursor)
	require.Equal(t, groupsTable, m.focus)
	require.Equal(t, 1, reversed())
}

// TestGroupIsChosenAndLeft: enter shows the keys of a group, and esc shows all keys.
func TestGroupIsChosenAndLeft(t *testing.T) {
	s := many()
	m := after(t, asked(t, s), press("tab"), press("down"))
	next, command := m.Update(press("enter"))
	require.NotNil(t, command, "it asks at once")
	m = after(t, next.(Model))
	require.Equal(t, string(s.Groups[1].Group), m.choice.Group)
	require.Equal(t, keysTable, m.focus)
	m = after(t, m, press("esc"))
	require.Empty(t, m.choice.Group)
}

// TestAnswerOfAnotherChoiceIsNotShown: a reply to a request from before the choice is discarded.
func TestAnswerOfAnotherChoiceIsNotShown(t *testing.T) {
	m := asked(t, many())
	old := m.choice
	m = after(t, m, press("s"))
	require.True(t, m.choice.Calls)
	m = after(t, m, answered{Snapshot{}, nil, start, old})
	require.Len(t, m.snapshot.Keys, 40)
	m = after(t, m, answered{Snapshot{}, nil, start, m.choice})
	require.Empty(t, m.snapshot.Keys)
}

// TestSilenceIsSaid: an error, or the lack of a reply, is shown on the first line.
func TestSilenceIsSaid(t *testing.T) {
	m := asked(t, many())
	require.Contains(t, m.lines()[0], "live · 02:47:12 UTC")
	m.asking = true
	m = after(t, m, tick(start.Add(9*time.Second)))
	require.Contains(t, ansi.Strip(m.lines()[0]), "✕ no answer for 9 s")
	m = after(t, m, answered{Snapshot{}, errors.New("connection\nrefused\x1b[2J"), start.Add(10 * time.Second), m.choice})
	require.Contains(t, ansi.Strip(m.lines()[0]), `✕ no answer for 10 s: connection refused\x1b[2J`)
	first := after(t, NewModel(nil, time.Second, func() time.Time { return start }), answered{Snapshot{}, errors.New("refused"), start, Choice{Span: 300}})
	require.Contains(t, first.lines()[0], "✕ no answer: refused")
}

// TestPauseAsksNoMore: a paused program sends no requests, and continues afterwards.
func TestPauseAsksNoMore(t *testing.T) {
	calls := 0
	overview, err := json.Marshal(report.Overview{})
	require.NoError(t, err)
	m := NewModel(func(context.Context, ...string) ([]byte, error) { calls++; return overview, nil }, time.Second, func() time.Time { return start })
	m = after(t, m, answered{many(), nil, start, m.choice}, press("p"), tick(start.Add(time.Second)))
	require.False(t, m.asking)
	require.Contains(t, m.lines()[0], "paused at 02:47:12")
	m = after(t, m, press("p"), tick(start.Add(2*time.Second)))
	require.True(t, m.asking)
	require.Zero(t, calls, "only a command that is run asks")
	m.ask()()
	require.NotZero(t, calls)
}

// TestHelpAndSpans: the other keys do what the help says.
func TestHelpAndSpans(t *testing.T) {
	m := after(t, asked(t, many()), press("?"))
	require.Contains(t, strings.Join(m.lines(), "\n"), "q        leaves")
	m = after(t, m, press("?"), press("t"), press("t"), press("t"))
	require.Equal(t, int64(24*3600), m.choice.Span)
	m = after(t, m, press("t"))
	require.Equal(t, int64(300), m.choice.Span)
	_, command := m.Update(press("q"))
	require.IsType(t, tea.QuitMsg{}, command())
}
