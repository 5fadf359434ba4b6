package limiters

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
)

// TestAcquireAsLibraries replays the recorded decisions of rate limiter libraries with the
// TB.ACQUIRE that corresponds to each call. Steps without a class must agree. A step with a class
// has the values of cellserver, which must match and must differ from those of the library. The
// steps of each class are counted, so that a difference cannot appear or vanish unnoticed.
func TestAcquireAsLibraries(t *testing.T) {
	effort.Alone(t)
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

// unlabelled has the recorded values that differ from those of cellserver although their steps
// have no class, each with the value of cellserver.
//
// Bucket4j: in the recording a refund with INIT on a missing key creates the key. By the rule,
// and by the recorded calls of TB.ACQUIRE, it creates nothing and is answered from the INIT
// tokens. x/time: 1 ns before the token is available the library truncates the wait to 0, which
// is the class xtime-double.
var unlabelled = map[string]int64{
	"bucket4j-greedy-random-310023 269688474821086 available":  1,
	"bucket4j-greedy-random-310023 269688474821086 remaining":  1,
	"bucket4j-greedy-random-310023 625336172948758 available":  1,
	"bucket4j-greedy-random-310023 1749411035416242 available": 1,
	"bucket4j-greedy-random-310023 5340163745925626 available": 1,
	"bucket4j-greedy-random-310023 5855032706515429 available": 1,
	"bucket4j-greedy-random-310023 7416208251212581 available": 1,
	"xtime-cancel-random-1310019 82515205959 wait_ns":          1,
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
	now := limit.Instant(play.head.Epoch + line.At)
	play.store.expire(now)
	five, ok := play.store.acquire(now, play.arguments(line)).([]any)
	require.True(t, ok, "%s at %d: an error", play.head.Scenario, line.At)
	for field, theirs := range line.Result {
		if line.Ours[field] != nil || !play.comparable(field, line, five) {
			continue
		}
		if ours, ok := unlabelled[fmt.Sprintf("%s %d %s", play.head.Scenario, line.At, field)]; ok {
			require.False(t, play.same(field, theirs, ours), "no longer different: strike it off the list")
			require.Equal(t, ours, libraryField(field, line, five))
			continue
		}
		play.check(t, line, five, field, theirs)
	}
	for field, ours := range line.Ours {
		play.check(t, line, five, field, ours)
	}
	require.Equal(t, line.Class != "", line.Ours != nil)
}

func (play *libraryPlay) check(t *testing.T, line *libraryLine, five []any, field string, want any) {
	t.Helper()
	got := libraryField(field, line, five)
	require.True(t, play.same(field, want, got), "%s at %d: %s n %d, %s is %v, want %v (class %q): %v",
		play.head.Scenario, line.At, line.Op, line.N, field, got, want, line.Class, five)
}

// arguments returns the arguments of the corresponding TB.ACQUIRE, beginning with the key.
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

// comparable reports whether a field of the library's result can be compared with the command's
// reply.
func (play *libraryPlay) comparable(field string, line *libraryLine, five []any) bool {
	granted := five[0] == int64(0)
	switch field {
	case "granted", "taken", "violation_ns":
		return true
	case "available":
		if line.Op != "acquire" && line.Op != "partial" {
			return true
		}
	case "wait_ns":
		if !granted {
			return false
		}
	case "retry_ns":
		if granted {
			return false
		}
	}
	return slices.Contains(play.head.Compare, field)
}

// libraryField returns the value of cellserver for a field of the library's result.
func libraryField(field string, line *libraryLine, five []any) any {
	switch field {
	case "granted":
		return five[0] == int64(0)
	case "taken":
		return line.N - five[0].(int64)
	case "remaining", "available":
		return five[2]
	case "wait_ns", "violation_ns":
		return max(0, five[3].(int64))
	case "retry_ns":
		return five[3]
	}
	return five[4]
}

// same compares a value of the library with that of cellserver: durations rounded up to the unit
// of the reply, and tokens rounded down to whole ones.
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
