package compat_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// valkeyLeftOut is the list of what of Valkey's suite does not pass here, and why.
const valkeyLeftOut = "valkey/left_out.md"

// valkeyOutcome is what became of one test of the suite.
type valkeyOutcome struct {
	name string
	// status is the suite's word: ok, err, skip, ignore, exception.
	status string
	// says is what the suite says about a failure.
	says string
}

var (
	terminalColor = regexp.MustCompile("\x1b\\[[0-9;]*m")
	valkeyLine    = regexp.MustCompile(`^\[(ok|err|skip|ignore|exception)\]: (.*)$`)
	valkeyOther   = regexp.MustCompile(`^\[(ready|\d+/\d+ done|testing)\]`)
	valkeySeconds = regexp.MustCompile(` \(\d+ ms\)$`)
	valkeyWhere   = regexp.MustCompile(` in tests/unit/\S+\.tcl$`)
)

// parseValkey reads what the suite prints about one unit. The unit was played to its
// end if done is set.
func parseValkey(output string) (outcomes []valkeyOutcome, done bool) {
	output, _, _ = strings.Cut(terminalColor.ReplaceAllString(output, ""), "\n                   The End")
	var last *valkeyOutcome
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if m := valkeyLine.FindStringSubmatch(line); m != nil {
			name := valkeyWhere.ReplaceAllString(valkeySeconds.ReplaceAllString(m[2], ""), "")
			outcomes = append(outcomes, valkeyOutcome{name: name, status: m[1]})
			last = &outcomes[len(outcomes)-1]
			continue
		}
		if valkeyOther.MatchString(line) {
			done = done || strings.Contains(line, " done]")
			last = nil
		} else if last != nil && len(last.says) < 2000 {
			last.says += line + "\n"
		}
	}
	return outcomes, done
}

// valkeyEntry is a row of the list.
type valkeyEntry struct {
	unit, tests, says string
	// notRun says that the tests are not even tried.
	notRun bool
	reason string

	name    *regexp.Regexp
	matched atomic.Int64 // failures that it explains
}

// applies reports whether the entry explains a failure.
func (e *valkeyEntry) applies(unit string, o *valkeyOutcome) bool {
	return e.names(unit, o) && strings.Contains(strings.ToLower(o.name+"\n"+o.says), strings.ToLower(e.says))
}

// names reports whether the entry is about a test, whatever became of it.
func (e *valkeyEntry) names(unit string, o *valkeyOutcome) bool {
	return (e.unit == "*" || e.unit == unit) && e.name.MatchString(o.name)
}

// readValkeyList reads the list. A star in the name of tests stands for anything.
func readValkeyList(tb testing.TB) (entries []*valkeyEntry) {
	tb.Helper()
	content, err := os.ReadFile(valkeyLeftOut)
	require.NoError(tb, err)
	_, table, found := strings.Cut(string(content), "\n| unit |")
	require.True(tb, found, "%s has no table", valkeyLeftOut)
	for i, line := range strings.Split(table, "\n") {
		if i < 2 || !strings.HasPrefix(line, "|") {
			continue
		}
		cells := tableCells(line)
		require.Len(tb, cells, 5, line)
		e := &valkeyEntry{unit: cells[0], tests: cells[1], says: cells[2], notRun: cells[3] == "not run", reason: cells[4]}
		require.Contains(tb, []string{"fails", "not run"}, cells[3], line)
		require.NotEmpty(tb, e.reason, line)
		require.False(tb, e.tests == "*" && e.says == "", "an entry about everything explains nothing: %s", line)
		e.name = regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(e.tests), `\*`, ".*") + "$")
		entries = append(entries, e)
	}
	return entries
}

// judgeValkey compares the results of a unit's tests with the list, and returns the differences,
// a sentence each. A name that several tests have fails if one of them does.
func judgeValkey(unit string, outcomes []valkeyOutcome, entries []*valkeyEntry) (faults []string) {
	failed := make(map[string]bool)
	for i := range outcomes {
		o := &outcomes[i]
		if o.status != "err" && o.status != "exception" {
			continue
		}
		failed[o.name] = true
		at := slices.IndexFunc(entries, func(e *valkeyEntry) bool { return !e.notRun && e.applies(unit, o) })
		if at < 0 || o.status == "exception" {
			faults = append(faults, fmt.Sprintf("%s: %s\n%s", o.status, o.name, firstLines(o.says, 5)))
			continue
		}
		entries[at].matched.Add(1)
	}
	passing := make(map[string]bool)
	for i := range outcomes {
		o := &outcomes[i]
		for _, e := range entries {
			switch {
			case !e.names(unit, o):
			case e.notRun && o.status == "skip":
				e.matched.Add(1)
			case o.status == "ok" && !e.notRun && e.says == "" && !failed[o.name]:
				passing[o.name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(passing)) {
		faults = append(faults, "passes by now: "+name)
	}
	return faults
}

func firstLines(text string, n int) string {
	lines := strings.SplitN(text, "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "\n")
}

func TestValkeyResultsAreReadAndJudged(t *testing.T) {
	const output = "Testing unit/x\n" +
		"[\x1b[0;32mok\x1b[0m]: passes (12 ms)\n" +
		"[err]: fails (a) [b] in tests/unit/type/x.tcl\nExpected '1' to be equal to '2'\nERR unknown command 'SORT', with args\n" +
		"[skip]: is left out\n[ignore]: is debugged: Tag: needs:debug denied\n" +
		"[err]: fails too in tests/unit/x.tcl\n[ok]: fails too (1 ms)\n[ok]: passes by now (1 ms)\n" +
		"[1/1 done]: unit/x (1 seconds)\n\n                   The End\n\n*** [err]: fails (a) [b] in tests/unit/type/x.tcl\n"
	outcomes, done := parseValkey(output)
	require.True(t, done)
	require.Equal(t, []valkeyOutcome{
		{"passes", "ok", ""},
		{"fails (a) [b]", "err", "Expected '1' to be equal to '2'\nERR unknown command 'SORT', with args\n"},
		{"is left out", "skip", ""},
		{"is debugged: Tag: needs:debug denied", "ignore", ""},
		{"fails too", "err", ""},
		{"fails too", "ok", ""},
		{"passes by now", "ok", ""},
	}, outcomes)
	_, done = parseValkey("Testing unit/x\n[exception]: Executing test client: I/O error.\n")
	require.False(t, done)

	entry := func(tests, says string, notRun bool) *valkeyEntry {
		name := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(tests), `\*`, ".*") + "$")
		return &valkeyEntry{unit: "unit/x", tests: tests, says: says, notRun: notRun, reason: "so", name: name}
	}
	require.Len(t, judgeValkey("unit/x", outcomes, nil), 2, "two tests fail")
	list := []*valkeyEntry{entry("*", "unknown command 'sort'", false), entry("fails t*", "", false), entry("is left*", "", true), entry("passes by*", "", false)}
	require.Equal(t, []string{"passes by now: passes by now"}, judgeValkey("unit/x", outcomes, list))
	for i, want := range []int64{1, 1, 1, 0} {
		require.Equal(t, want, list[i].matched.Load(), list[i].tests)
	}
	require.Len(t, judgeValkey("unit/y", outcomes, list), 2, "another unit's tests are not explained")
	broken := []valkeyOutcome{{"fails too", "exception", ""}}
	require.Len(t, judgeValkey("unit/x", broken, list), 1, "what ends a unit is never expected")
}

// TestValkeyListIsReadable reads the list where the suite is not, too.
func TestValkeyListIsReadable(t *testing.T) { require.NotEmpty(t, readValkeyList(t)) }
