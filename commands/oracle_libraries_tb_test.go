package commands

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/cellserver/cellserver/limit"
	"github.com/stretchr/testify/require"
)

// TestAcquireAsLibraries plays the recorded decisions of rate limiter libraries on
// the TB.ACQUIRE that stands for each. Steps without a class must agree; a step
// with one carries our values, which must be what we answer, and differ from the
// library's. classes counts them, so that none can appear or vanish unseen.
func TestAcquireAsLibraries(t *testing.T) {
	for _, family := range []struct {
		file, family string
		steps        int
		classes      map[string]int
	}{
		{"bucket4j", "greedy", 3906, map[string]int{
			"bucket4j-violation": 43, "bucket4j-fraction": 3,
			"bucket4j-replace": 321, "bucket4j-init-restart": 68,
		}},
		{"bucket4j", "intervally", 2192, map[string]int{"bucket4j-phase": 1467}},
		{"guava", "bursty", 8684, map[string]int{"guava-init-restart": 6, "guava-us-truncation": 1}},
		{"guava", "warmup", 10111, map[string]int{"guava-us-truncation": 6}},
		{"mennanov", "token", 2416, map[string]int{"mennanov-token-hint": 385}},
		{"mennanov", "leaky", 2429, map[string]int{"mennanov-leaky-hint": 504}},
		{"redis_rate", "atmost", 1080, map[string]int{"redis_rate-partial-fraction": 311}},
		{"resilience4j", "reserve", 1456, map[string]int{"resilience4j-oversize": 19, "resilience4j-phase": 474}},
		{"uber", "take", 2880, map[string]int{}},
		{"xtime", "rate", 5, map[string]int{"xtime-cancel": 1}},
		{"xtime", "allow", 1080, map[string]int{}},
		{"xtime", "reserve", 1080, map[string]int{}},
		{"xtime", "cancel", 1190, map[string]int{"xtime-double": 1}},
		{"xtime", "setlimit", 1290, map[string]int{"xtime-burst-change": 244}},
	} {
		t.Run(family.file+"/"+family.family, func(t *testing.T) {
			steps, classes := 0, map[string]int{}
			var play libraryPlay
			for _, raw := range readRecordedLines(t, "libraries/"+family.file+".jsonl.gz") {
				var line libraryLine
				require.NoError(t, json.Unmarshal(raw, &line))
				if line.Scenario != "" {
					play = libraryPlay{head: line, store: bucketStore{keys: map[string]*bucketEntry{}}}
					continue
				}
				if play.head.Family != family.family {
					continue
				}
				steps++
				if line.Class != "" {
					classes[line.Class]++
				}
				play.step(t, &line)
			}
			require.Equal(t, family.steps, steps)
			require.Equal(t, family.classes, classes)
		})
	}
}

// libraryLine is a line of the recorded decisions: the head of a scenario or one of
// its steps.
type libraryLine struct {
	Scenario  string   `json:"scenario"`
	Family    string   `json:"family"`
	Command   string   `json:"command"`
	Epoch     int64    `json:"epoch_ns"`
	Compare   []string `json:"compare"`
	Tolerance int64    `json:"tolerance_ms"`

	At      int64          `json:"at_ns"`
	Op      string         `json:"op"`
	N       int64          `json:"n"`
	MaxWait int64          `json:"max_wait_ms"`
	Result  map[string]any `json:"result"`
	Ours    map[string]any `json:"ours"`
	Class   string         `json:"class"`
}

// libraryPlay is a scenario in progress.
type libraryPlay struct {
	head  libraryLine
	store bucketStore
}

func (play *libraryPlay) step(t *testing.T, line *libraryLine) {
	t.Helper()
	if line.Op == "set_command" {
		play.head.Command = line.Command
		if line.Result["available"] == nil {
			return
		}
	}
	five, ok := play.store.acquire(limit.Instant(play.head.Epoch+line.At), play.arguments(line)).([]any)
	require.True(t, ok, "%s at %d", play.head.Scenario, line.At)
	differs := false
	for field, theirs := range line.Result {
		want, special := theirs, false
		if ours := line.Ours[field]; ours != nil {
			want, special = ours, true
		}
		got, comparable := play.field(field, line, five)
		if !comparable {
			continue
		}
		require.True(t, play.same(field, want, got), "%s at %d: %s n %d, %s is %v, want %v (class %q): %v",
			play.head.Scenario, line.At, line.Op, line.N, field, got, want, line.Class, five)
		differs = differs || special && theirs != want
	}
	if line.Class != "" {
		for field, want := range line.Ours {
			got, _ := play.field(field, line, five)
			require.True(t, play.same(field, want, got), "%s at %d: %s is %v, want %v", play.head.Scenario, line.At, field, got, want)
		}
		require.True(t, differs, "%s at %d: class %s, but nothing differs", play.head.Scenario, line.At, line.Class)
	}
}

// arguments returns those of our call, the key first.
func (play *libraryPlay) arguments(line *libraryLine) [][]byte {
	quantity, word := line.N, ""
	switch line.Op {
	case "status", "set_command":
		quantity = 0
	case "refund":
		quantity = -line.N
	case "peek", "partial", "force":
		word = " " + line.Op
	}
	text := strings.NewReplacer(
		"{q}", strconv.FormatInt(quantity, 10),
		"{wait}", strconv.FormatInt(line.MaxWait, 10),
	).Replace(play.head.Command)
	if !strings.Contains(strings.ToLower(text), word) {
		text += word
	}
	var args [][]byte
	for _, arg := range strings.Fields(text)[1:] {
		args = append(args, []byte(arg))
	}
	return args
}

// field returns ours of a field of the library's result; comparable is false where
// the command has no such thing or says something else with it.
func (play *libraryPlay) field(field string, line *libraryLine, five []any) (got any, comparable bool) {
	granted := five[0] == int64(0)
	compared := false
	for _, name := range play.head.Compare {
		compared = compared || name == field
	}
	switch field {
	case "granted":
		return granted, true
	case "taken":
		return line.N - five[0].(int64), true
	case "remaining":
		return five[2], compared
	case "available":
		return five[2], line.Op == "status" || line.Op == "set_command" || compared
	case "wait_ns":
		return max(0, five[3].(int64)), compared && granted
	case "retry_ns":
		return five[3], compared && !granted
	case "reset_ns":
		return five[4], compared
	case "violation_ns":
		return max(0, five[3].(int64)), true
	}
	return nil, false
}

// same compares a value of the library with ours: durations rounded up to our unit,
// tokens cut to whole ones that are there.
func (play *libraryPlay) same(field string, want, got any) bool {
	number, ok := want.(float64)
	if !ok {
		return want == got
	}
	if !strings.HasSuffix(field, "_ns") {
		return int64(max(0, math.Floor(number))) == got
	}
	if number >= 0 {
		number = math.Ceil(number / 1e6)
	}
	return math.Abs(number-float64(got.(int64))) <= float64(play.head.Tolerance)
}
