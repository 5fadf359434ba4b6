package clause

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// TestErrorsNameArgumentAndBound: an error about a value names the argument and its bounds, after
// the text that clients may compare.
func TestErrorsNameArgumentAndBound(t *testing.T) {
	const (
		integer  = "ERR value is not an integer or out of range: "
		positive = "ERR value is out of range, must be positive: "
		duration = "an integer of at least 1, in seconds, or with MS in milliseconds"
	)
	for line, want := range map[string]string{
		"SW k 100 60 BUCKETS 1":      positive + "BUCKETS is '1', must be from 2 to 1000",
		"SW k 100 1m":                integer + "window is '1m', must be " + duration,
		"SW k 0 60":                  positive + "limit is '0', must be at least 1",
		"SW k 5 60 2x":               integer + "quantity is '2x', must be an integer",
		"SW k 5 60 ANCHOR x":         integer + "ANCHOR is 'x', must be FIRST, KEY or a unix time",
		"TB k 10 1 1 INIT 11":        positive + "INIT is '11', must be from 0 to the capacity, 10",
		"TB k 10 1 1 INIT x":         integer + "INIT is 'x', must be from 0 to the capacity, 10",
		"TB k 10 x 1":                integer + "count is 'x', must be an integer",
		"TB k 10 1 0":                positive + "period is '0', must be " + duration,
		"TB k 1 1 1 WARMUP 1 COLD x": integer + "COLD is 'x', must be a number of at least 1, such as 2.5",
		"CC k 5 30s m":               integer + "lease is '30s', must be " + duration,
	} {
		all := words(line)
		kind, args := all[0], all[1:]
		var err resp.Error
		switch string(kind) {
		case "SW":
			err = SlidingWindow(args, 0, new(slidingwindow.Call), nil)
		case "TB":
			err = Acquire(args, new(tokenbucket.Call), nil)
		default:
			err = LeaseAcquire(args, 0, new(concurrency.Call))
		}
		require.Equal(t, want, string(err), line)
		require.True(t, resp.IsArgument(err))
		require.False(t, resp.IsArgument(resp.Bare(err)))
	}
}

// TestClauseErrorsSayTheUsage: the error of a clause that is too short, or has a wrong value, has
// the syntax, in a policy without the quantity.
func TestClauseErrorsSayTheUsage(t *testing.T) {
	for line, want := range map[string][2]string{
		"TB 1 1": {
			"ERR syntax error near 'TB'; usage: TB capacity count period [quantity] [GREEDY | INTERVAL] [DEBT] [INIT tokens]",
			"ERR syntax error near 'TB'; usage: TB capacity count period [GREEDY | INTERVAL] [DEBT] [INIT tokens] [CALLS]",
		},
		"CL 1 1": {
			"ERR syntax error near 'CL'; usage: CL max_burst count period [quantity]",
			"ERR syntax error near 'CL'; usage: CL max_burst count period [CALLS]",
		},
		"CC -1 1": {
			"ERR value is out of range, must be positive: limit is '-1', must be at least 1; usage: CC limit lease",
			"ERR value is out of range, must be positive: limit is '-1', must be at least 0; usage: CC limit lease",
		},
		"TB 1 1 1 NO": {"ERR syntax error near 'NO'", "ERR syntax error near 'NO'"},
	} {
		for i, ofPolicy := range []bool{false, true} {
			var r Room
			_, err := r.Parse(words(line), nil, Options{Unit: time.Second, Policy: ofPolicy})
			require.Equal(t, want[i], string(err), line)
		}
	}
}

// TestZeroLimits: only clauses of policies may have a limit of 0.
func TestZeroLimits(t *testing.T) {
	for _, line := range []string{"SW 0 60", "SW 0 60 LOG", "SW 0 60 BUCKETS 5 EVEN", "TB 0 1 1", "TB 0 1 1 DEBT INIT 0", "TB 0 5 1 INTERVAL", "CC 0 60"} {
		var r Room
		_, err := r.Parse(words(line), nil, Options{Unit: time.Second, Policy: true})
		require.Empty(t, err, line)
		_, err = r.Parse(words(line), nil, Options{Unit: time.Second})
		require.Equal(t, resp.ErrNotPositive, resp.Bare(err), line)
	}
}
