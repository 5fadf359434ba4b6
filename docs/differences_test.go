package docs_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
)

// recordings are the folders of the recorded replies of redis-cell and decisions of
// libraries, relative to this one.
const recordings = "../compat_test/testdata/oracle"

// recordedLine is a line of a recording: the head of a scenario, or a step.
type recordedLine struct {
	Scenario  string `json:"scenario"`
	Family    string `json:"family"`
	Command   string `json:"command"`
	Deviation string `json:"deviation"`

	Cmd    []string        `json:"cmd"`
	At     json.RawMessage `json:"at_ns"`
	Op     string          `json:"op"`
	N      int64           `json:"n"`
	Result struct {
		Granted   *bool  `json:"granted"`
		Remaining *int64 `json:"remaining"`
		Retry     *int64 `json:"retry_ns"`
		Reset     *int64 `json:"reset_ns"`
	} `json:"result"`
	Ours  json.RawMessage `json:"ours"`
	Class string          `json:"class"`
}

// eachRecorded calls f with every line of the files that match the pattern.
func eachRecorded(t *testing.T, pattern string, f func(file string, line *recordedLine)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.FromSlash(recordings), pattern))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		raw, err := os.Open(name)
		require.NoError(t, err)
		var in io.Reader = raw
		if strings.HasSuffix(name, ".gz") {
			in, err = gzip.NewReader(raw)
			require.NoError(t, err)
		}
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var line recordedLine
			require.NoError(t, json.Unmarshal(lines.Bytes(), &line), "%s: %s", name, lines.Bytes())
			f(filepath.Base(name), &line)
		}
		require.NoError(t, lines.Err())
		require.NoError(t, raw.Close())
	}
}

// differencesPage returns differences.md and the cells of its table rows by the
// first cell.
func differencesPage(t *testing.T) (page string, rows map[string][]string) {
	t.Helper()
	content, err := os.ReadFile("differences.md")
	require.NoError(t, err)
	rows = map[string][]string{}
	for line := range strings.Lines(string(content)) {
		if cells := strings.Split(strings.TrimSpace(line), " | "); strings.HasPrefix(line, "| ") && len(cells) > 4 {
			cells[0] = strings.TrimPrefix(cells[0], "| ")
			last := len(cells) - 1
			cells[last] = strings.TrimSpace(strings.TrimSuffix(cells[last], "|"))
			rows[cells[0]] = cells
		}
	}
	return string(content), rows
}

// thousands writes n as the page does: 1,512.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// TestThrottleCounts holds what differences.md says of redis-cell to the recordings.
func TestThrottleCounts(t *testing.T) {
	effort.Alone(t)
	page, rows := differencesPage(t)
	steps, equal, points := 0, 0, map[string]int{}
	eachRecorded(t, "*.jsonl*", func(_ string, line *recordedLine) {
		if line.Scenario != "" {
			return
		}
		steps++
		if line.Ours == nil {
			equal++
		}
		if line.Deviation == "" || !strings.EqualFold(line.Cmd[0], "cl.throttle") {
			return
		}
		for point := range strings.SplitSeq(line.Deviation, "+") {
			points[strings.ReplaceAll(point, "SECF64", "D10")]++
		}
	})
	require.Contains(t, page, thousands(steps)+"\nrecorded calls of redis-cell")
	require.Contains(t, page, thousands(equal)+" of the recorded calls")
	require.Len(t, points, 8)
	for i := range 10 {
		point := fmt.Sprintf("D%d", i+1)
		require.Contains(t, rows, point)
		if n := points[point]; n > 0 {
			require.Equal(t, thousands(n), rows[point][4], point)
		}
	}
}

// TestClassCounts holds the table of libraries to the recordings, class by class.
func TestClassCounts(t *testing.T) {
	effort.Alone(t)
	page, rows := differencesPage(t)
	steps, notPlayed := 0, 0
	classes := map[string][2]int{}
	family := ""
	eachRecorded(t, "libraries/*.gz", func(_ string, line *recordedLine) {
		if line.Scenario != "" {
			family = line.Family
			return
		}
		steps++
		if family == "sync" {
			notPlayed++
		}
		if line.Class != "" {
			n := classes[line.Class]
			n[0]++
			if ours := string(line.Ours); strings.Contains(ours, `"granted"`) || strings.Contains(ours, `"taken"`) {
				n[1]++
			}
			classes[line.Class] = n
		}
	})
	require.Contains(t, page, thousands(steps-notPlayed)+" recorded decisions")
	require.Len(t, classes, 27)
	for class, n := range classes {
		require.Contains(t, rows, class)
		require.Equal(t, []string{thousands(n[0]), thousands(n[1])}, rows[class][4:], class)
	}
	for first, cells := range rows {
		if slices.Contains([]string{"intended", "rounding"}, cells[1]) {
			require.Contains(t, classes, first, "a class that no recording has")
		}
	}
}

// TestSeveralBandwidths plays Bucket4j's buckets with several bandwidths as RL.MULTI.
// The recordings of the other families are played in package commands.
func TestSeveralBandwidths(t *testing.T) {
	var run *exampleRun
	head, played, steps := recordedLine{}, false, 0
	eachRecorded(t, "libraries/bucket4j.jsonl.gz", func(_ string, line *recordedLine) {
		if line.Scenario != "" {
			if head, played = *line, line.Family == "several"; played {
				run = newExampleRun(t)
			}
			return
		}
		if !played {
			return
		}
		steps++
		at, err := strconv.ParseInt(string(line.At), 10, 64)
		require.NoError(t, err)
		run.server.Clock.Set(midnight.Add(time.Duration(at)))
		command := strings.ReplaceAll(head.Command, "{q}", strconv.FormatInt(line.N, 10))
		if line.Op == "peek" {
			command += " PEEK"
		}
		where := fmt.Sprintf("%s at %d: %s", head.Scenario, at, command)
		reply := run.client(t, "").do(t, where, command)
		var limited, most, remaining, retry, reset int64
		_, err = fmt.Sscan(reply, &limited, &most, &remaining, &retry, &reset)
		require.NoError(t, err, "%s: %s", where, reply)
		require.Equal(t, *line.Result.Granted, limited == 0, where)
		require.Equal(t, *line.Result.Remaining, remaining, where)
		if line.Result.Retry != nil {
			require.Equal(t, limit.MillisUp(time.Duration(*line.Result.Retry)), retry, where)
		}
		if line.Result.Reset != nil {
			require.Equal(t, limit.MillisUp(time.Duration(*line.Result.Reset)), reset, where)
		}
	})
	require.Equal(t, 1452, steps)
}
