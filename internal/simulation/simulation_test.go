package simulation_test

import (
	"flag"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
)

var (
	seed  = flag.Int64("seed", -1, "play one seed, and print its events with -v")
	from  = flag.Uint64("from", 0, "the first seed")
	seeds = flag.Uint64("seeds", 0, "how many seeds; 0 is the usual number")
	spend = flag.Duration("spend", 0, "play seeds until this time has passed, in place of a number of seeds")
)

// TestMain makes goroutines run on one processor, so that a replay of a seed is nearly exact.
func TestMain(m *testing.M) {
	flag.Parse()
	runtime.GOMAXPROCS(1)
	os.Exit(m.Run())
}

// TestSeeds plays histories of a cluster with faults, one for each seed.
func TestSeeds(t *testing.T) {
	if *seed >= 0 {
		r := Run(t, uint64(*seed))
		t.Logf("%v\n%s", r.Plan, r.Events)
		require.Empty(t, r.Broken, r.Why)
		return
	}
	count := *seeds
	switch {
	case count > 0:
	case testing.Short():
		count = 4
	default:
		count = 30
	}
	began := time.Now()
	var played uint64
	var virtual time.Duration
	var calls, faults, excused, checked int64
	for ; *spend > 0 && time.Since(began) < *spend || *spend == 0 && played < count; played++ {
		r := Run(t, *from+played)
		if r.Broken != "" {
			t.Errorf("%v\n%s\nBROKEN HERE: %s of seed %d, after %v: replay it with -seed %d",
				r.Plan, r.Events, r.Broken, r.Plan.Seed, time.Since(began).Truncate(time.Millisecond), r.Plan.Seed)
			break
		}
		if t.Failed() {
			break
		}
		virtual, calls, faults, excused, checked = virtual+r.Virtual, calls+r.Calls, faults+r.Faults, excused+r.Excused, checked+r.Checked
	}
	t.Logf("%d seeds from %d in %v: %.2f virtual hours, %d calls, %d faults, %d of them excused, %d checks",
		played, *from, time.Since(began).Truncate(time.Second), virtual.Hours(), calls, faults, excused, checked)
}

// TestOverridesEnd: the comparison recognizes a record that is no longer valid.
func TestOverridesEnd(t *testing.T) {
	key := "16/override/use/o4"
	record := entry.Entry{
		Kind: entry.String, Expiry: limit.MaxInstant,
		Value: []byte(`{"limits":["SW 120 31536000 FIXED"],"until":1700000050600556841,"since":1700000009600556841}`),
	}
	one := map[string]entry.Entry{key: record}
	require.Empty(t, differ(one, nil, 1700000050600556841))
	require.NotEmpty(t, differ(one, nil, 1700000050600556840))
}
