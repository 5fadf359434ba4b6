package attack_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/tools/bench/attack"
)

func TestFaultsAreWhatMustNotHappenToCellserver(t *testing.T) {
	good := attack.Result{Attack: "a", Cell: true, Peak: 10, Bound: 10, Served: 1, Refused: 1, Others: attack.Latency{Worst: time.Hour}}
	require.Empty(t, good.Faults())
	for want, spoil := range map[string]func(r *attack.Result){
		"its bound":                func(r *attack.Result) { r.Peak++ },
		"cut off":                  func(r *attack.Result) { r.Closed = 1 },
		"in time":                  func(r *attack.Result) { r.Late = 1 },
		"lost":                     func(r *attack.Result) { r.ProbeFault = "lost" },
		"never answered":           func(r *attack.Result) { r.Others.Unanswered = 1 },
		"the server died: gone so": func(r *attack.Result) { r.Died, r.Late = "gone so", 1 },
	} {
		r := good
		spoil(&r)
		require.Len(t, r.Faults(), 1, want)
		require.Contains(t, r.Faults()[0], want)
		r.Cell = false
		require.Empty(t, r.Faults(), "another server may")
	}
}

func TestTableHasALineForEachResult(t *testing.T) {
	var out strings.Builder
	require.NoError(t, attack.Table(&out, []*attack.Result{
		{
			Attack: "a", Server: "x", Cell: true, Peak: 3 << 20, Bound: 4 << 20, Served: 5, Bytes: 8e6, Elapsed: 2 * time.Second, User: time.Second,
			Others: attack.Latency{P50: 1234 * time.Microsecond, P99: 12345 * time.Microsecond, P999: 123456 * time.Microsecond, Refused: 2, First: "OOM no", Unanswered: 3},
			Idle:   attack.Latency{Count: 1, P50: 10 * time.Microsecond, P999: 20 * time.Millisecond},
			Errors: map[string]int64{"OOM": 1, "ERR": 2}, Notes: []string{"so"}, ProbeFault: "lost", Died: "oh",
		},
		{Attack: "b", Server: "y", Peak: 1 << 20},
		{Attack: "c", Server: "z", Skipped: "not for it"},
	}))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 5)
	require.Equal(t, "| a | x | 3 | 4 | 1.23 | 12.3 | 123 | 0.00 | 0.01 | 20.0 | 5 | 0 | 0 | 0 | 2.0 | 1.00 | 4 | "+
		"so; errors: 2 ERR, 1 OOM; others: 2 OOM; others: 3 unanswered; others: lost; **the server died** |", lines[2])
	require.Contains(t, lines[3], "| b | y | 1 | - |")
	require.Equal(t, "| c | z | "+strings.Repeat("- | ", 15)+"not for it |", lines[4])
	for _, line := range lines {
		require.Equal(t, strings.Count(lines[0], "|"), strings.Count(line, "|"), line)
	}
}

func TestAttacksAreChosenByName(t *testing.T) {
	all, err := attack.Named()
	require.NoError(t, err)
	require.Len(t, all, len(attack.All()))
	two, err := attack.Named("mix", "large-lrange")
	require.NoError(t, err)
	require.Equal(t, []string{"mix", "large-lrange"}, []string{two[0].Name, two[1].Name})
	_, err = attack.Named("nothing")
	require.ErrorContains(t, err, "nothing")
}
