package compat_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// knownDifferences is the only list of expected differences, with their reasons.
const knownDifferences = "known_differences.md"

// readTable returns the rows of the table below a heading of knownDifferences,
// without its head.
func readTable(tb testing.TB, heading string) (rows [][]string) {
	tb.Helper()
	content, err := os.ReadFile(knownDifferences)
	require.NoError(tb, err)
	_, below, found := strings.Cut(string(content), "\n## "+heading+"\n")
	require.True(tb, found, "%s has no section %q", knownDifferences, heading)
	below, _, _ = strings.Cut(below, "\n## ")
	for _, line := range strings.Split(below, "\n") {
		if strings.HasPrefix(line, "|") {
			rows = append(rows, tableCells(line))
		}
	}
	require.GreaterOrEqual(tb, len(rows), 2, "the table below %q has no head", heading)
	return rows[2:]
}

var cellBorder = regexp.MustCompile(`(?:^|[^\\])\|`)

// tableCells splits a row of a table. A bar in a cell is written `\|`, and
// backquotes around a cell are dropped.
func tableCells(line string) (cells []string) {
	for {
		at := cellBorder.FindStringIndex(line)
		if at == nil {
			return cells[1:] // without the empty cell at the left border
		}
		cell := strings.TrimSpace(line[:at[1]-1])
		if len(cell) > 1 && cell[0] == '`' && cell[len(cell)-1] == '`' {
			cell = cell[1 : len(cell)-1]
		}
		cells = append(cells, strings.ReplaceAll(cell, `\|`, "|"))
		line = line[at[1]:]
	}
}

// expectedDifference is a reply, or with the command "*" a section, that another
// server is known to answer otherwise.
type expectedDifference struct {
	script, section, command string
	protocols                string // "2", "3", or "2, 3"
	reason                   string

	mu       sync.Mutex
	answered int  // guarded by mu
	differed int  // guarded by mu
	leftOut  bool // guarded by mu: it could not be played to its end
}

// applies reports whether the entry is about that run of a section.
func (e *expectedDifference) applies(script, section string, proto int) bool {
	return e.script == script && e.section == section && strings.Contains(e.protocols, string(rune('0'+proto)))
}

func (e *expectedDifference) noteLeftOut() {
	e.mu.Lock()
	e.leftOut = true
	e.mu.Unlock()
}

func (e *expectedDifference) note(answered, differed int) {
	e.mu.Lock()
	e.answered += answered
	e.differed += differed
	e.mu.Unlock()
}

// expectedDifferences are those of one server.
type expectedDifferences []*expectedDifference

// readDifferences returns the entries below a heading that hold for a Redis of that
// version.
func readDifferences(tb testing.TB, heading, version string) (all expectedDifferences) {
	tb.Helper()
	for _, row := range readTable(tb, heading) {
		require.Len(tb, row, 6, "%s: script, section, command, RESP, before and reason: %q", heading, row)
		require.NotEmpty(tb, row[5], "%s: a difference needs its reason: %q", heading, row)
		if row[4] == "" || isBefore(version, row[4]) {
			all = append(all, &expectedDifference{script: row[0], section: row[1], command: row[2], protocols: row[3], reason: row[5]})
		}
	}
	return all
}

// isBefore compares versions number by number.
func isBefore(version, than string) bool {
	numbers := strings.Split(version, ".")
	for i, t := range strings.Split(than, ".") {
		want, err := strconv.Atoi(t)
		if err != nil || i >= len(numbers) {
			return err == nil
		}
		if n, err := strconv.Atoi(numbers[i]); err != nil || n != want {
			return err == nil && n < want
		}
	}
	return false
}

func TestIsBefore(t *testing.T) {
	for _, v := range []string{"7.0.15", "7", "6.2", "7.1.99"} {
		require.True(t, isBefore(v, "7.2"), v)
	}
	for _, v := range []string{"7.2", "7.2.0", "7.4.1", "8.0", "10.0"} {
		require.False(t, isBefore(v, "7.2"), v)
	}
}

// find returns the entry about a command, or about the section as a whole.
func (all expectedDifferences) find(script, section, command string, proto int) *expectedDifference {
	for _, e := range all {
		if e.command == command && e.applies(script, section, proto) {
			return e
		}
	}
	return nil
}

// leaveOut notes that a section was not played at all.
func (all expectedDifferences) leaveOut(script, section string) {
	for _, e := range all {
		if e.script == script && e.section == section {
			e.noteLeftOut()
		}
	}
}

// broken describes the entries that have not come true: an expected failure that
// passes is a failure.
func (all expectedDifferences) broken() (faults []string) {
	for _, e := range all {
		what := e.script + ", " + e.section + ", `" + e.command + "`"
		switch {
		case e.answered == 0 && e.leftOut:
		case e.answered == 0:
			faults = append(faults, what+": nothing like it was played; is the entry still needed?")
		case e.differed < e.answered:
			faults = append(faults, fmt.Sprintf("%s: expected to differ (%s), but %d of %d replies do not",
				what, e.reason, e.answered-e.differed, e.answered))
		}
	}
	return faults
}

func TestTableCells(t *testing.T) {
	for line, want := range map[string][]string{
		"| a | b |":                    {"a", "b"},
		"|a|b|":                        {"a", "b"},
		"| `GET k` |  |":               {"GET k", ""},
		"| `INFO client\\|list` | x |": {"INFO client|list", "x"},
		"| uses `SET` here | y |":      {"uses `SET` here", "y"},
	} {
		require.Equal(t, want, tableCells(line), line)
	}
}

// TestExpectedDifferences: an entry stands only if every reply it is about differs.
func TestExpectedDifferences(t *testing.T) {
	entry := &expectedDifference{script: "redis/keys", section: "del", command: "DEL k", protocols: "2, 3"}
	all := expectedDifferences{entry}
	require.Len(t, all.broken(), 1, "nothing was played")
	require.Same(t, entry, all.find("redis/keys", "del", "DEL k", 2))
	require.Same(t, entry, all.find("redis/keys", "del", "DEL k", 3))
	require.Nil(t, all.find("redis/keys", "del", "DEL x", 3))
	require.Nil(t, all.find("redis/keys", "other", "DEL k", 3))
	entry.note(1, 1)
	require.Empty(t, all.broken())
	entry.note(1, 0)
	require.Len(t, all.broken(), 1, "one of two replies was the expected one")
	all = expectedDifferences{{script: "redis/keys", section: "del", command: "*", protocols: "2"}}
	all[0].noteLeftOut()
	require.Empty(t, all.broken(), "this server cannot be asked")
	require.NotNil(t, all.find("redis/keys", "del", "*", 2))
	require.Nil(t, all.find("redis/keys", "del", "*", 3))
}
