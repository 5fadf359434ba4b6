package clause

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/tokenbucket"
)

// FuzzAcquire: every call that TB.ACQUIRE accepts can be decided.
func FuzzAcquire(f *testing.F) {
	for _, call := range []string{
		"k 10 1 1", "k 10 5 1000 3 INTERVAL MS", "k 2 10 1000 1 WAIT 250 MS", "k 5 1 1 DEBT INIT 0 BLOCK 0.5",
		"k 10 1 1 6 ID r1", "k 1000 1000 60 800 RESERVE a 30", "k 10 1 1 MS RESERVE a 86400000 FORCE", "k 10 1 1 0 RESERVE ID 9223372036854775807",
		"k 10 1 1 KEEP 3 PARTIAL", "k 10 1 1 BLOCK 1 KEEP 100%", "k 8 2 1 WARMUP 4 COLD 3 WAIT 1", "k 3 10 1 2 PARTIAL", "k 9223372036854775807 1 1 -9223372036854775808 FORCE", "k 1 1e3 +1",
	} {
		f.Add([]byte(call))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		args := bytes.Split(line, []byte(" "))
		var (
			call tokenbucket.Call
			o    CallOptions
		)
		if Acquire(args, &call, &o) != "" {
			return
		}
		checkIdentity(t, &o.Identity, call.Quantity)
		checkKeep(t, o.Keep)
		require.NoError(t, call.Validate())
		require.GreaterOrEqual(t, call.MaxWait, time.Duration(0))
		var plan tokenbucket.Plan
		if err := tokenbucket.Decide(0, nil, 0, 1_700_000_000e9, &call, &plan); err == nil {
			require.GreaterOrEqual(t, plan.Decision.Remaining, int64(0))
			require.LessOrEqual(t, plan.Decision.Remaining, plan.Decision.Limit)
		}
	})
}
