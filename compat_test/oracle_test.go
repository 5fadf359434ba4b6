package compat_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/script"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// scenario is a recording that stands for itself.
type scenario struct {
	name  string
	steps []script.Recorded
}

// oracleFiles are the recordings with the number of steps that each must have, so
// that a truncated file does not pass: redis-cell's own replies, and the replies of
// an exact model of the other commands.
var oracleFiles = map[string]int{
	"edges.jsonl":                       910,
	"sane.jsonl.gz":                     40022,
	"deviations.jsonl.gz":               16256,
	"limiters/sw.jsonl.gz":              16534,
	"limiters/tb.jsonl.gz":              16474,
	"limiters/cc.jsonl.gz":              16527,
	"limiters/multi.jsonl.gz":           16544,
	"limiters/changes.jsonl.gz":         12117,
	"limiters/sw-decided.jsonl.gz":      4184,
	"limiters/cc-decided.jsonl.gz":      4156,
	"limiters/multi-decided.jsonl.gz":   4178,
	"limiters/changes-decided.jsonl.gz": 3062,
}

// TestOracle replays every recorded call through the whole server, bytes in and
// bytes out, with the clock set to each step. Scenarios that need a command that
// does not exist yet are expected to fail, by name.
func TestOracle(t *testing.T) {
	if testing.Short() {
		t.Skip("a short run looks for races, and one goroutine answers all of this")
	}
	missing := readMissing(t)
	var mu sync.Mutex
	seen := map[string]bool{}
	t.Run("files", func(t *testing.T) {
		for file, steps := range oracleFiles {
			t.Run(file, func(t *testing.T) {
				t.Parallel()
				total := 0
				for i, sc := range readOracle(t, file) {
					total += len(sc.steps)
					failed, err := replay(sc, 2+i%2, putList)
					require.NoError(t, err)
					if missing[sc.name] != "" {
						mu.Lock()
						seen[sc.name] = true
						mu.Unlock()
						require.NotEmpty(t, failed, "%s is expected to fail, since %s does not exist", sc.name, missing[sc.name])
						continue
					}
					for _, f := range failed {
						t.Errorf("%s, %s", file, f)
					}
				}
				require.Equal(t, steps, total, "steps of %s", file)
			})
		}
	})
	for name := range missing {
		require.True(t, seen[name], "no recorded scenario is called %s", name)
	}
}

// standIn plays a step in place of a command that does not exist, if it can.
type standIn func(*inproc.Server, *script.Recorded) (done bool, err error)

// putList plays LPUSH, which the recordings use to make a wrong type, or to be
// refused because there is one.
func putList(s *inproc.Server, step *script.Recorded) (done bool, err error) {
	if step.Cmd[0] != "LPUSH" {
		return false, nil
	}
	if step.Error != nil {
		return true, nil
	}
	return true, s.Put(step.Cmd[1], entry.List, step.Cmd[2], 0)
}

// readMissing returns the command that each scenario needs and does not find.
func readMissing(tb testing.TB) map[string]string {
	tb.Helper()
	missing := map[string]string{}
	for _, row := range readTable(tb, "Recorded scenarios") {
		require.Len(tb, row, 3, "scenario, command and reason: %q", row)
		missing[row[0]] = row[1]
	}
	return missing
}

// readOracle reads a file of recorded scenarios.
func readOracle(tb testing.TB, file string) (all []scenario) {
	tb.Helper()
	steps, err := script.ReadRecorded(filepath.Join("testdata", "oracle", file))
	require.NoError(tb, err)
	for _, r := range steps {
		if r.Scenario != "" {
			all = append(all, scenario{name: r.Scenario})
			continue
		}
		last := &all[len(all)-1]
		last.steps = append(last.steps, r)
	}
	return all
}

// replay plays a scenario on a server of its own, in the given protocol, and
// describes every difference.
func replay(sc scenario, proto int, stand standIn) (failed []string, err error) {
	first, err := strconv.ParseInt(sc.steps[0].At, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("reading an instant: %w", err)
	}
	s, err := inproc.Feed(limit.Instant(first))
	if err != nil {
		return nil, fmt.Errorf("starting a server: %w", err)
	}
	defer s.Close()
	if _, err := s.Do("HELLO", strconv.Itoa(proto)); err != nil {
		return nil, fmt.Errorf("saying hello: %w", err)
	}
	for i := range sc.steps {
		step := &sc.steps[i]
		at, err := strconv.ParseInt(step.At, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("reading an instant: %w", err)
		}
		s.Server().Clock.Set(limit.Instant(at))
		done, err := stand(s.Server(), step)
		if err != nil {
			return nil, err
		}
		if done {
			continue
		}
		got, err := s.Value(step.Cmd...)
		if err != nil {
			return nil, err
		}
		if !step.Accepts(asRecorded(got, step.Cmd)) {
			failed = append(failed, fmt.Sprintf("%s, line %d, at %s: %q answered %s, not %s", sc.name, step.Line, step.At, step.Cmd, got, step.Wanted()))
		}
	}
	return failed, nil
}

// asRecorded takes from an error the argument of cmd that it names, and how the command or the
// clause is written: the recordings have the bare text.
func asRecorded(v script.Value, cmd []string) script.Value {
	if v.Type != '-' {
		return v
	}
	bare := resp.Bare(resp.Error(v.Text))
	named := resp.IsArgument(resp.Error(v.Text))
	if v.Text == string(resp.ErrRateAdvice) {
		v.Text = string(bare)
	}
	for _, arg := range cmd {
		switch quoted := strings.TrimPrefix(string(resp.SyntaxNear([]byte(arg))), string(resp.ErrSyntax)+" near "); {
		case bare == resp.SyntaxNear([]byte(arg)):
			v.Text = string(resp.ErrSyntax)
		case named && strings.Contains(v.Text, " is "+quoted+", must be "):
			v.Text = string(bare)
		}
	}
	return v
}
