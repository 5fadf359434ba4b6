package clause

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/slidingwindow"
)

func TestWord(t *testing.T) {
	for word, want := range map[string]Kind{
		"CL": Cell, "cl": Cell, "Sw": Window, "tB": Bucket, "CC": Lease, "cc": Lease,
		"": None, "C": None, "CLL": None, "CS": None, "MS": None, "C\x0c": None, "10": None,
	} {
		require.Equal(t, want, Word([]byte(word)), "%q", word)
	}
}

func TestCountAndNext(t *testing.T) {
	for line, want := range map[string]int{
		"": 0, "CL": 1, "CL 1 2 3 SW 1 2": 2, "1 CL": -1, "MS": -1, "TB TB TB": 3, "CC 1 2 tb 1 1 1 MS": 2,
	} {
		require.Equal(t, want, Count(words(line)), line)
	}
	one, rest := Next(words("SW 1 60 LOG cl 1 2 3"))
	require.Equal(t, words("SW 1 60 LOG"), one)
	require.Equal(t, words("cl 1 2 3"), rest)
	one, rest = Next(rest)
	require.Equal(t, words("cl 1 2 3"), one)
	require.Empty(t, rest)
}

// TestRoom: a parsed clause has the values of its own text, and none of an earlier clause in the
// same Room.
func TestRoom(t *testing.T) {
	var r Room
	o := Options{Unit: time.Second, LogMaxEntries: 100}
	parse := func(line, key string) decide.Clause {
		c, err := r.Parse(words(line), []byte(key), o)
		require.Empty(t, err, line)
		return c
	}
	for _, c := range []struct {
		line        string
		kind        Kind
		hasQuantity bool
		keyPhase    bool
		want        decide.Clause
	}{
		{"SW 5 10 1 ANCHOR KEY", Window, true, true, decide.Clause{Window: &r.Window}},
		{"CL 4 1 10", Cell, false, false, decide.Clause{Quota: &r.Quota, Quantity: 1}},
		{"TB 5 1 10", Bucket, false, false, decide.Clause{Bucket: &r.Bucket}},
		{"CL 4 1 10 3", Cell, true, false, decide.Clause{Quota: &r.Quota, Quantity: 3}},
		{"TB 5 1 10 0 INTERVAL", Bucket, true, false, decide.Clause{Bucket: &r.Bucket}},
		{"CC 5 10", Lease, false, false, decide.Clause{Lease: &r.Lease}},
		{"SW 5 10 LOG", Window, false, false, decide.Clause{Window: &r.Window}},
	} {
		got := parse(c.line, "k")
		c.want.Key = []byte("k")
		require.Equal(t, c.want, got, c.line)
		require.Equal(t, []any{c.kind, c.hasQuantity, c.keyPhase}, []any{r.Kind, r.HasQuantity, r.KeyPhase}, c.line)
	}
	require.Equal(t, int64(100), r.Window.LogMaxEntries)
	_, err := r.Parse(words("NO 1"), nil, o)
	require.Equal(t, near("NO"), err)
	got, err := r.Parse(words("SW 5 0"), nil, o)
	require.Equal(t, resp.ErrNotPositive, resp.Bare(err))
	require.Zero(t, got)
}

// TestRoomOfOtherKeys: a clause that was parsed once can be used for many keys.
func TestRoomOfOtherKeys(t *testing.T) {
	var r Room
	_, err := r.Parse(words("SW 5 10 ANCHOR KEY"), []byte("a"), Options{Unit: time.Second})
	require.Empty(t, err)
	for _, key := range []string{"a", "b", ""} {
		copied := r
		c := copied.Clause([]byte(key))
		require.Equal(t, key, string(c.Key))
		require.Same(t, &copied.Window, c.Window)
		require.Equal(t, slidingwindow.PhaseOf(slidingwindow.HashKey([]byte(key)), 10*time.Second), c.Window.Phase)
	}
	_, err = r.Parse(words("SW 5 10 ANCHOR 3"), []byte("a"), Options{Unit: time.Second})
	require.Empty(t, err)
	require.Equal(t, 3*time.Second, r.Clause([]byte("b")).Window.Phase)
}

func TestRoomAllocatesNothing(t *testing.T) {
	var r Room
	o := Options{Unit: time.Second}
	for _, line := range []string{"CL 4 1 10 3", "SW 5 10 BUCKETS 5 ANCHOR KEY", "TB 5 1 10 2 DEBT INIT 0", "cc 5 10"} {
		args, key := words(line), []byte("k")
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = r.Parse(args, key, o) }), line)
	}
}

// TestCalls: CALLS is the last word of a clause of a policy that counts units.
func TestCalls(t *testing.T) {
	o := Options{Unit: time.Second, Policy: true}
	for line, calls := range map[string]bool{
		"SW 5 10 calls": true, "SW 5 10 FIXED ANCHOR KEY CALLS": true, "TB 5 1 10 DEBT INIT 3 CALLS": true, "CL 4 1 10 CALLS": true,
		"SW 5 10": false, "CC 5 10": false,
	} {
		r := Room{Calls: !calls}
		_, err := r.Parse(words(line), nil, o)
		require.Empty(t, err, line)
		require.Equal(t, calls, r.Calls, line)
	}
	for line, want := range map[string]resp.Error{
		"SW 5 10 CALLS CALLS": near("CALLS"), "SW 5 10 CALLS FIXED": near("CALLS"), "CC 5 10 CALLS": near("CALLS"), "SW CALLS": near("SW"),
		"SW 5 CALLS": near("SW"), "TB CALLS 1 1": resp.ErrNotInteger, "CALLS": near("CALLS"),
	} {
		var r Room
		_, err := r.Parse(words(line), nil, o)
		require.Equal(t, want, resp.Bare(err), line)
	}
	for _, line := range []string{"SW 5 10 CALLS", "TB 5 1 10 CALLS", "CL 5 1 10 CALLS"} {
		var r Room
		_, err := r.Parse(words(line), nil, Options{Unit: time.Second})
		require.NotEmpty(t, err, "in RL.MULTI a clause has a quantity of its own")
	}
}
