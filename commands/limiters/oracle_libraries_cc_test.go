package limiters

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
)

// heldLine is one line of the recorded decisions of other libraries: the head of a scenario, or
// one of its steps.
type heldLine struct {
	Scenario  string `json:"scenario"`
	Family    string `json:"family"`
	Command   string `json:"command"`
	Epoch     int64  `json:"epoch_ns"`
	Tolerance int64  `json:"tolerance_ms"`

	At     int64      `json:"at_ns"`
	Op     string     `json:"op"`
	N      int64      `json:"n"`
	Member string     `json:"member"`
	Result heldResult `json:"result"`
	// Ours has the fields in which cellserver differs on purpose. Class is the reason.
	Ours  heldResult `json:"ours"`
	Class string     `json:"class"`
}

// heldResult is the answer of a library. Fields that it did not report are nil.
type heldResult struct {
	Granted   *bool  `json:"granted"`
	Limit     *int64 `json:"limit"`
	Remaining *int64 `json:"remaining"`
	Retry     *int64 `json:"retry_ns"`
	Reset     *int64 `json:"reset_ns"`
}

// heldRun is a scenario in progress.
type heldRun struct {
	head   heldLine
	tat    limit.Instant
	leases leaseStore
}

// TestThrottleAndLeaseLibraries replays the recorded decisions of the libraries whose algorithm
// CL.THROTTLE or CC.ACQUIRE has. Every step has to agree in every field, with times exact to the
// nanosecond except for the tolerance of a scenario. Steps with the class of an intended
// difference have to differ as recorded.
func TestThrottleAndLeaseLibraries(t *testing.T) {
	steps, classes := map[string]int{}, map[string]int{}
	for _, library := range []string{"throttled", "redis_rate", "mennanov"} {
		var run heldRun
		for _, raw := range readRecordedLines(t, "libraries/"+library+".jsonl.gz") {
			var line heldLine
			require.NoError(t, json.Unmarshal(raw, &line))
			if line.Scenario != "" {
				run = heldRun{head: line, leases: leaseStore{}}
				continue
			}
			if name := run.head.Command[:3]; name != "CL." && name != "CC." {
				continue
			}
			steps[library+" "+run.head.Family]++
			if line.Class != "" {
				classes[line.Class]++
			}
			run.play(t, &line)
		}
	}
	require.Equal(t, map[string]int{"throttled gcra": 3600, "redis_rate allow": 3116, "mennanov concurrent": 1440}, steps)
	require.Equal(t, map[string]int{
		"throttled-oversize": 28, "redis_rate-remaining": 110, "redis_rate-oversize": 34, "redis_rate-double": 149,
	}, classes)
}

func (r *heldRun) play(t *testing.T, line *heldLine) {
	t.Helper()
	where := func() string { return r.head.Scenario + " at " + strconv.FormatInt(line.At, 10) }
	got := r.decide(t, limit.Instant(r.head.Epoch+line.At), line)
	differs := false
	for _, field := range []struct {
		theirs, ours *int64
		got          int64
		tolerance    int64
	}{
		{heldNumber(line.Result.Granted), heldNumber(line.Ours.Granted), 1 - got.Refused, 0},
		{line.Result.Limit, line.Ours.Limit, got.Limit, 0},
		{line.Result.Remaining, line.Ours.Remaining, got.Remaining, 0},
		{line.Result.Retry, line.Ours.Retry, int64(got.RetryAfter), r.head.Tolerance * int64(time.Millisecond)},
		{line.Result.Reset, line.Ours.Reset, int64(got.ResetAfter), r.head.Tolerance * int64(time.Millisecond)},
	} {
		want := field.theirs
		if field.ours != nil {
			want = field.ours
			require.NotEqual(t, *field.theirs, *field.ours, where())
			differs = true
		}
		// Where the admission differs, the other fields of the library describe another state.
		comparable := line.Op == "acquire" && (line.Ours.Granted == nil || field.ours != nil)
		if want != nil && comparable {
			require.InDelta(t, *want, field.got, float64(field.tolerance), "%s: %+v", where(), got)
		}
	}
	require.Equal(t, line.Class != "", differs, where())
}

// decide makes the call of a step.
func (r *heldRun) decide(t *testing.T, now limit.Instant, line *heldLine) limit.Decision {
	t.Helper()
	text := strings.NewReplacer("{q}", strconv.FormatInt(line.N, 10), "{member}", line.Member).Replace(r.head.Command)
	var args [][]byte
	for _, arg := range strings.Fields(text)[1:] {
		args = append(args, []byte(arg))
	}
	if strings.HasPrefix(r.head.Command, "CL.") {
		var quota gcra.Quota
		var quantity int64
		require.Empty(t, clause.Throttle(args, &quota, &quantity))
		next, d, write := gcra.Decide(r.tat, now, &quota, quantity)
		if write {
			r.tat = next
		}
		return d
	}
	var c concurrency.Call
	if line.Op == "release" {
		require.Empty(t, clause.LeaseRelease([][]byte{args[0], []byte(line.Member)}, &c))
	} else {
		require.Empty(t, clause.LeaseAcquire(args, 0, &c))
	}
	if e := r.leases["k"]; e != nil && e.expiry <= now {
		delete(r.leases, "k")
	}
	d, err := r.leases.decide(now, "k", &c)
	require.NoError(t, err)
	return d
}

// heldNumber returns 1 for true, 0 for false and nil for nil.
func heldNumber(b *bool) *int64 {
	if b == nil {
		return nil
	}
	n := int64(0)
	if *b {
		n = 1
	}
	return &n
}
