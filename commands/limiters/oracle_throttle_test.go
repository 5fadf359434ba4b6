package limiters

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// recordedScenario is one scenario of the recorded replies: commands in order on an empty store,
// each at its own fixed instant.
type recordedScenario struct {
	name  string
	steps []recordedStep
}

// recordedStep is one command of a scenario with its correct replies: the intended reply where it
// differs from the recorded one, else the recorded one.
type recordedStep struct {
	at   limit.Instant
	args [][]byte
	want []any
}

// recordedLine is the JSON of one line: a scenario's head or one of its steps.
type recordedLine struct {
	Scenario string          `json:"scenario"`
	At       string          `json:"at"`
	Cmd      []string        `json:"cmd"`
	Reply    json.RawMessage `json:"reply"`
	Error    *string         `json:"error"`
	Ours     json.RawMessage `json:"ours"`
	OursAny  json.RawMessage `json:"ours_any"`
}

// readRecorded reads a file of recorded scenarios below compat_test/testdata/oracle.
func readRecorded(t *testing.T, name string) []recordedScenario {
	t.Helper()
	var scenarios []recordedScenario
	for _, raw := range readRecordedLines(t, name) {
		var line recordedLine
		require.NoError(t, json.Unmarshal(raw, &line))
		if line.Scenario != "" {
			scenarios = append(scenarios, recordedScenario{name: line.Scenario})
			continue
		}
		at, err := strconv.ParseInt(line.At, 10, 64)
		require.NoError(t, err)
		step := recordedStep{at: limit.Instant(at), want: line.wanted(t)}
		for _, arg := range line.Cmd {
			step.args = append(step.args, []byte(arg))
		}
		last := &scenarios[len(scenarios)-1]
		last.steps = append(last.steps, step)
	}
	return scenarios
}

// readRecordedLines returns the lines of a JSON Lines file, gzipped or not.
func readRecordedLines(t *testing.T, name string) [][]byte {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "compat_test", "testdata", "oracle", filepath.FromSlash(name)))
	require.NoError(t, err)
	defer f.Close()
	var r io.Reader = bufio.NewReader(f)
	if strings.HasSuffix(name, ".gz") {
		r, err = gzip.NewReader(r)
		require.NoError(t, err)
	}
	all, err := io.ReadAll(r)
	require.NoError(t, err)
	return bytes.Split(bytes.TrimSpace(all), []byte("\n"))
}

// wanted returns the correct replies of the line.
func (l *recordedLine) wanted(t *testing.T) []any {
	t.Helper()
	switch {
	case l.OursAny != nil:
		return recordedReply(t, l.OursAny).([]any)
	case l.Ours != nil:
		return []any{recordedReply(t, l.Ours)}
	case l.Error != nil:
		return []any{resp.Error(*l.Error)}
	}
	return []any{recordedReply(t, l.Reply)}
}

// recordedReply decodes a reply with its integers as int64.
func recordedReply(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	require.NoError(t, dec.Decode(&v))
	return recordedIntegers(t, v)
}

func recordedIntegers(t *testing.T, v any) any {
	t.Helper()
	switch v := v.(type) {
	case json.Number:
		n, err := v.Int64()
		require.NoError(t, err)
		return n
	case []any:
		for i := range v {
			v[i] = recordedIntegers(t, v[i])
		}
	}
	return v
}

// matches reports whether got is one of the correct replies of the step. Errors were recorded
// without the argument that they name.
func (s *recordedStep) matches(got any) bool {
	if err, isError := got.(resp.Error); isError {
		got = resp.Bare(err)
	}
	for _, arg := range s.args {
		if got == any(resp.SyntaxNear(arg)) {
			got = resp.ErrSyntax
		}
	}
	for _, want := range s.want {
		if reflect.DeepEqual(got, want) {
			return true
		}
	}
	return false
}

// notYet has the scenarios that need a command which the store of this test lacks, and which
// therefore differ.
var notYet = map[string]string{
	"lua": "EVAL and EVAL_RO: command not available yet",
}

// TestThrottleRecorded replays every recorded reply of redis-cell, with the
// intended reply where we deviate, through parse, decide and a map.
func TestThrottleRecorded(t *testing.T) {
	effort.Alone(t)
	steps := 0
	for _, name := range []string{"edges.jsonl", "sane.jsonl.gz", "deviations.jsonl.gz"} {
		for _, scenario := range readRecorded(t, name) {
			store, different := cellStore{}, 0
			for i, step := range scenario.steps {
				steps++
				got := store.run(step.at, step.args)
				if step.matches(got) {
					continue
				}
				different++
				if notYet[scenario.name] == "" {
					t.Errorf("%s: %s step %d: %q\n got %v\nwant %v", name, scenario.name, i, step.args, got, step.want)
				}
			}
			if reason := notYet[scenario.name]; reason != "" && different == 0 {
				t.Errorf("%s passes now; strike it off the list (%s)", scenario.name, reason)
			}
		}
	}
	require.Equal(t, 910+40022+16256, steps)
}

// cellStore is a minimal store for the recorded scenarios.
type cellStore map[string]*cellEntry

type cellEntry struct {
	kind    string // "cell", "string" or "list", as TYPE and OBJECT ENCODING distinguish them
	value   []byte
	expiry  limit.Instant
	expires bool
}

func (s cellStore) run(now limit.Instant, args [][]byte) any {
	for key, e := range s {
		if e.expires && e.expiry <= now {
			delete(s, key)
		}
	}
	name, args := strings.ToUpper(string(args[0])), args[1:]
	if name == "CL.THROTTLE" {
		return s.throttle(now, args)
	}
	key := string(args[0])
	e := s[key]
	switch name {
	case "SET":
		s[key] = &cellEntry{kind: "string", value: args[1]}
		return "OK"
	case "LPUSH":
		s[key] = &cellEntry{kind: "list"}
		return int64(1)
	case "OBJECT":
		return "embstr"
	case "RENAME":
		delete(s, key)
		s[string(args[1])] = e
		return "OK"
	case "PERSIST":
		if e == nil || !e.expires {
			return int64(0)
		}
		e.expires = false
		return int64(1)
	case "PEXPIRE":
		ms, _ := arg.Int(args[1])
		e.expiry, e.expires = now+limit.Instant(ms*1e6), true
		return int64(1)
	}
	return e.read(now, name)
}

// read answers the commands that only read one key.
func (e *cellEntry) read(now limit.Instant, name string) any {
	ms := int64(-2)
	if e != nil {
		ms = -1
		if e.expires {
			ms = limit.MillisUp(e.expiry.Sub(now))
		}
	}
	switch {
	case name == "PTTL":
		return ms
	case name == "TTL" && ms >= 0:
		return (ms + 500) / 1000
	case name == "TTL":
		return ms
	case name == "EXISTS" && e == nil:
		return int64(0)
	case name == "EXISTS":
		return int64(1)
	case name == "TYPE" && e == nil:
		return "none"
	case name == "TYPE" && e.kind == "list":
		return "list"
	case name == "TYPE":
		return "string"
	case name == "GET" && e == nil:
		return nil
	case name == "GET" && e.kind == "cell":
		return string(gcra.AppendDecimal(nil, gcra.State(e.value)))
	case name == "GET":
		return string(e.value)
	}
	return resp.Error("ERR unknown command '" + name + "'")
}

func (s cellStore) throttle(now limit.Instant, args [][]byte) any {
	var quota gcra.Quota
	var quantity int64
	if err := clause.Throttle(args, &quota, &quantity); err != "" {
		return err
	}
	var tat limit.Instant
	key := string(args[0])
	if e := s[key]; e != nil && e.kind == "cell" {
		tat = gcra.State(e.value)
	} else if e != nil && e.kind == "list" {
		return resp.ErrWrongType
	} else if e != nil {
		var err error
		if tat, err = gcra.ParseDecimal(e.value); err != nil {
			return resp.ErrNotInteger
		}
	}
	next, d, write := gcra.Decide(tat, now, &quota, quantity)
	switch {
	case write && next > now:
		s[key] = &cellEntry{kind: "cell", value: gcra.AppendState(nil, next), expiry: next, expires: true}
	case write:
		delete(s, key)
	}
	return []any{
		d.Refused, d.Limit, d.Remaining,
		gcra.RetrySeconds(d), limit.CellSeconds(d.ResetAfter),
	}
}
