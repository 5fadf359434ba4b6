package top

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Model is the state of the interactive program. It implements [tea.Model].
type Model struct {
	source   Source
	interval time.Duration
	clock    func() time.Time
	choice   Choice
	snapshot *Snapshot
	asking   bool // whether a request is in progress; there is at most one
	paused   bool
	help     bool
	err      error
	seen     time.Time // the time at which snapshot arrived

	width, height int
	focus, cursor int
	now           time.Time
}

// NewModel returns a program that reads from source at the given interval. now is the wall clock.
func NewModel(source Source, interval time.Duration, now func() time.Time) Model {
	return Model{source: source, interval: interval, clock: now, choice: Choice{Span: 300}, width: 80, height: 24}
}

type (
	tick     time.Time
	answered struct {
		snapshot Snapshot
		err      error
		at       time.Time
		choice   Choice
	}
)

// patience is the timeout of a request.
const patience = 5 * time.Second

// ask returns a command that reads a snapshot in the background.
func (m Model) ask() tea.Cmd {
	source, choice, now := m.source, m.choice, m.clock
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		s, err := Ask(ctx, source, choice)
		return answered{s, err, now(), choice}
	}
}

func (m Model) wait() tea.Cmd {
	return tea.Tick(m.interval, func(t time.Time) tea.Msg { return tick(t) })
}

// Init starts the first request: see [tea.Model].
func (m Model) Init() tea.Cmd { return tea.Batch(m.ask(), m.wait()) }

// Update handles a key, a reply or a tick: see [tea.Model].
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m.press(msg.String())
	case tick:
		m.now = time.Time(msg)
		if m.asking || m.paused {
			return m, m.wait()
		}
		m.asking = true
		return m, tea.Batch(m.ask(), m.wait())
	case answered:
		m.asking = false
		m.now = msg.at
		if m.err = msg.err; msg.err == nil && msg.choice == m.choice {
			m.snapshot, m.seen = &msg.snapshot, msg.at
		}
		m.cursor = min(m.cursor, max(0, m.rows()-1))
	}
	return m, nil
}

// rows returns the number of rows of the table with the cursor, 0 before the first snapshot.
func (m Model) rows() int {
	if m.snapshot == nil {
		return 0
	}
	return [tables]int{len(m.snapshot.Keys), len(m.snapshot.Groups), len(m.snapshot.Changes)}[m.focus]
}

// press handles a key of the keyboard. A key without a meaning has no effect.
func (m Model) press(key string) (tea.Model, tea.Cmd) {
	before := m.choice
	switch key {
	case "q", "ctrl+c":
		return m, tea.Quit
	case "?", "h":
		m.help = !m.help
	case "p", "space":
		m.paused = !m.paused
	case "tab", "shift+tab":
		step := 1
		if key == "shift+tab" {
			step = tables - 1
		}
		m.focus, m.cursor = (m.focus+step)%tables, 0
	case "down", "j":
		m.cursor = min(m.cursor+1, max(0, m.rows()-1))
	case "up", "k":
		m.cursor = max(0, m.cursor-1)
	case "s":
		m.choice.Calls = !m.choice.Calls
	case "f":
		m.choice.Own = !m.choice.Own
	case "t":
		m.choice.Span = map[int64]int64{300: 3600, 3600: 6 * 3600, 6 * 3600: 24 * 3600}[m.choice.Span]
		if m.choice.Span == 0 {
			m.choice.Span = 300
		}
	case "enter":
		if m.focus == groupsTable && m.cursor < m.rows() {
			m.choice.Group = string(m.snapshot.Groups[m.cursor].Group)
			m.focus, m.cursor = keysTable, 0
		}
	case "esc":
		m.choice.Group, m.help = "", false
	}
	if m.choice != before {
		m.asking = true
		return m, m.ask()
	}
	return m, nil
}

const keyboard = `  q        leaves
  tab      goes to the next table: keys, groups, changes
  up down  moves in it; enter on a group shows its keys, esc all keys again
  s        shows the keys called most, or those denied most again
  t        shows 5 minutes, 1, 6 or 24 hours
  f        shows the figures of this server alone, or of all servers of its store again
  p        stops, and goes on
  ?        closes this`

// View draws the screen: see [tea.Model].
func (m Model) View() tea.View {
	v := tea.NewView(strings.Join(m.lines(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "cellserver top"
	return v
}

func (m Model) lines() []string {
	const foot = "  q leave · tab table · enter group · s order · t span · p pause · ? help"
	if m.help {
		return strings.Split("cellserver top\n\n"+keyboard, "\n")
	}
	if m.snapshot == nil {
		if m.err != nil {
			return []string{"✕ no answer: " + oneLine(m.err), "", "  It is tried again. q leaves."}
		}
		return []string{"asking the server"}
	}
	l := layout{width: m.width, height: m.height - 1, styled: true, choice: m.choice, focus: m.focus, cursor: m.cursor}
	l.note, l.lost = m.note()
	lines := draw(m.snapshot, l)
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	return append(lines, l.style(faint(), fit(foot, m.width, false)))
}

// note returns the time of the snapshot as text. lost says that the snapshot is too old, because
// the server does not answer; the text then says so.
func (m Model) note() (text string, lost bool) {
	text = time.UnixMilli(m.snapshot.Overview.At).UTC().Format("15:04:05") + " UTC"
	age := m.now.Sub(m.seen)
	switch {
	case m.paused:
		return "paused at " + text, false
	case m.err != nil:
		return fmt.Sprintf("✕ no answer for %d s: %s", int(age.Seconds()), oneLine(m.err)), true
	case age > m.interval+3*time.Second:
		return fmt.Sprintf("✕ no answer for %d s", int(age.Seconds())), true
	}
	return "live · " + text, false
}

func oneLine(err error) string { return shown(strings.ReplaceAll(err.Error(), "\n", " ")) }
