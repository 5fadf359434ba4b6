package limiters

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
)

// windowLibraryLine is one line of the recorded decisions of other libraries: the head of a
// scenario, or one of its steps.
type windowLibraryLine struct {
	Scenario string   `json:"scenario"`
	Family   string   `json:"family"`
	Command  string   `json:"command"`
	Epoch    int64    `json:"epoch_ns"`
	Compare  []string `json:"compare"`

	At     int64               `json:"at_ns"`
	Op     string              `json:"op"`
	N      int64               `json:"n"`
	Result windowLibraryResult `json:"result"`
	// Ours has the fields in which cellserver differs on purpose. Class is the reason.
	Ours  *windowLibraryResult `json:"ours"`
	Class string               `json:"class"`
}

// windowLibraryResult is the answer of a library. Fields that it did not report are nil.
type windowLibraryResult struct {
	Granted   *bool    `json:"granted"`
	Remaining *int64   `json:"remaining"`
	Available *float64 `json:"available"`
	Retry     *int64   `json:"retry_ns"`
	Reset     *int64   `json:"reset_ns"`
}

// TestSlidingWindowLibraries replays the recorded decisions of the libraries whose algorithm
// SW.ALLOW has. Every step has to agree in every comparable field, except for steps with the
// class of an intended difference, which have to differ from the library exactly as recorded.
func TestSlidingWindowLibraries(t *testing.T) {
	steps, classes := map[string]int{}, map[string]int{}
	for _, library := range []string{"slidingwindow", "mennanov", "limits", "redisson", "resilience4j", "bucket4j"} {
		var run windowLibraryRun
		for _, raw := range readRecordedLines(t, "libraries/"+library+".jsonl.gz") {
			var line windowLibraryLine
			require.NoError(t, json.Unmarshal(raw, &line))
			if line.Scenario != "" {
				run = windowLibraryRun{head: line, command: line.Command, store: windowStore{}}
				continue
			}
			if !strings.HasPrefix(run.head.Command, "SW.ALLOW ") {
				continue
			}
			steps[library+" "+run.head.Family]++
			if line.Class != "" {
				classes[line.Class]++
			}
			run.play(t, &line)
		}
	}
	require.Equal(t, map[string]int{
		"slidingwindow local": 5848,
		"mennanov fixed":      1451, "mennanov sliding": 3404,
		"limits fixed": 1449, "limits moving": 1448, "limits sliding": 1455,
		"redisson acquire": 1012, "redisson available": 990, "redisson release": 1016, "redisson update": 990,
		"resilience4j fixed": 1440,
		"bucket4j aligned":   1210,
	}, steps)
	require.Equal(t, map[string]int{
		"slidingwindow-double-product": 1,
		"mennanov-sliding-hint":        1550, "mennanov-sliding-fraction": 215,
		"limits-moving-inclusive": 23, "limits-double": 1,
		"redisson-hint": 1141, "redisson-release": 114, "redisson-update": 22,
	}, classes)
}

// windowLibraryRun is the replay of one scenario.
type windowLibraryRun struct {
	head    windowLibraryLine
	command string
	store   windowStore
}

func (r *windowLibraryRun) play(t *testing.T, step *windowLibraryLine) {
	t.Helper()
	quantity, option := step.N, ""
	switch step.Op {
	case "peek":
		option = " PEEK"
	case "refund":
		quantity = -quantity
	case "status":
		quantity = 0
	case "set_command":
		r.command = step.Command
		quantity = 0
		if step.Result.Available == nil {
			return
		}
	default:
		require.Equal(t, "acquire", step.Op)
	}
	line := strings.ReplaceAll(r.command, "{q}", strconv.FormatInt(quantity, 10)) + option
	args := words(line)[1:]
	var c slidingwindow.Call
	require.Empty(t, clause.SlidingWindow(args, 0, &c, nil), line)
	require.True(t, c.Millis, "times are compared in milliseconds")

	now := limit.Instant(r.head.Epoch + step.At)
	for key, e := range r.store {
		if e.expiry <= now {
			delete(r.store, key)
		}
	}
	d, err := r.store.decide(now, string(args[0]), &c)
	require.NoError(t, err)
	want := step.Result
	if step.Ours != nil {
		want.override(step.Ours)
		require.NotEmpty(t, r.different(d, &step.Result), "%s at %d: the class %q says that we differ", r.head.Scenario, step.At, step.Class)
	}
	require.Equal(t, step.Ours != nil, step.Class != "")
	if different := r.different(d, &want); len(different) > 0 {
		t.Errorf("%s at %d: %s\n got %+v\nother in %v", r.head.Scenario, step.At, line, d, different)
	}
}

// different returns the compared fields in which d differs from the answer of a library.
func (r *windowLibraryRun) different(d limit.Decision, want *windowLibraryResult) []string {
	var fields []string
	compare := func(field string, said, same bool) {
		if said && !same && slices.Contains(r.head.Compare, field) {
			fields = append(fields, field)
		}
	}
	compare("granted", want.Granted != nil, want.Granted != nil && *want.Granted == d.Allowed())
	compare("remaining", want.Remaining != nil, want.Remaining != nil && *want.Remaining == d.Remaining)
	compare("available", want.Available != nil, want.Available != nil &&
		int64(max(0, math.Floor(*want.Available))) == d.Remaining)
	compare("retry_ns", want.Retry != nil && !d.Allowed(), want.Retry != nil && millisUp(*want.Retry) == limit.MillisUp(d.RetryAfter))
	compare("reset_ns", want.Reset != nil, want.Reset != nil && millisUp(*want.Reset) == limit.MillisUp(d.ResetAfter))
	return fields
}

// millisUp rounds nanoseconds up to milliseconds. -1 stays -1.
func millisUp(ns int64) int64 {
	if ns < 0 {
		return -1
	}
	return limit.CeilDiv(ns, 1e6)
}

func (r *windowLibraryResult) override(ours *windowLibraryResult) {
	if ours.Granted != nil {
		r.Granted = ours.Granted
	}
	if ours.Remaining != nil {
		r.Remaining = ours.Remaining
	}
	if ours.Available != nil {
		r.Available = ours.Available
	}
	if ours.Retry != nil {
		r.Retry = ours.Retry
	}
	if ours.Reset != nil {
		r.Reset = ours.Reset
	}
}
