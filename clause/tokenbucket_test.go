package clause

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/tokenbucket"
)

// acquireArgs splits the arguments of a TB.ACQUIRE. ~ stands for an empty argument and _ for a
// space.
func acquireArgs(text string) [][]byte {
	var args [][]byte
	for _, arg := range strings.Fields(text) {
		arg = strings.ReplaceAll(strings.ReplaceAll(arg, "~", ""), "_", " ")
		args = append(args, []byte(arg))
	}
	return args
}

func TestAcquire(t *testing.T) {
	plain := tokenbucket.Call{
		Mode: tokenbucket.Greedy, Capacity: 5, Count: 3, Period: 10 * time.Second,
		Interval: 3333333333, Quantity: 1, Init: 5,
	}
	with := func(change func(*tokenbucket.Call)) tokenbucket.Call {
		c := plain
		change(&c)
		return c
	}
	for text, want := range map[string]tokenbucket.Call{
		"k 5 3 10":           plain,
		"k 5 3 10 1 GREEDY":  plain,
		"~ 5 3 10":           plain,
		"k 5 3 10 7":         with(func(c *tokenbucket.Call) { c.Quantity = 7 }),
		"k 5 3 10 -7 greedy": with(func(c *tokenbucket.Call) { c.Quantity = -7 }),
		"k 5 3 10 0 Peek":    with(func(c *tokenbucket.Call) { c.Quantity, c.Charge = 0, tokenbucket.Peek }),
		"k 5 3 10 MS": with(func(c *tokenbucket.Call) {
			c.Period, c.Interval, c.Millis = 10*time.Millisecond, 3333333, true
		}),
		"k 5 3 10 INTERVAL PARTIAL": with(func(c *tokenbucket.Call) {
			c.Mode, c.Charge = tokenbucket.Interval, tokenbucket.Partial
		}),
		"k 5 3 10 FORCE LEAKY": with(func(c *tokenbucket.Call) {
			c.Mode, c.Charge = tokenbucket.Leaky, tokenbucket.Force
		}),
		"k 5 3 10 DEBT INIT 0": with(func(c *tokenbucket.Call) { c.Mode, c.Init = tokenbucket.Debt, 0 }),
		"k 5 3 10 INIT 5 GREEDY DEBT": with(func(c *tokenbucket.Call) {
			c.Mode = tokenbucket.Debt
		}),
		"k 5 3 10 WAIT 0": with(func(c *tokenbucket.Call) { c.Waits = true }),
		"k 5 3 10 PEEK WAIT 2": with(func(c *tokenbucket.Call) {
			c.Waits, c.MaxWait, c.Charge = true, 2*time.Second, tokenbucket.Peek
		}),
		"k 5 3 10 BLOCK 0.25": with(func(c *tokenbucket.Call) {
			c.Waits, c.MaxWait, c.Block = true, 250*time.Millisecond, true
		}),
		"k 5 3 10 BLOCK 0": with(func(c *tokenbucket.Call) {
			c.Waits, c.MaxWait, c.Block = true, tokenbucket.NoLimit, true
		}),
		"k 5 3 10 WARMUP 4": with(func(c *tokenbucket.Call) {
			c.Mode, c.Warmup, c.Cold = tokenbucket.Warmup, 4*time.Second, 3
		}),
		"k 5 3 10 COLD 10 WAIT 7 WARMUP 4": with(func(c *tokenbucket.Call) {
			c.Mode, c.Warmup, c.Cold = tokenbucket.Warmup, 4*time.Second, 10
			c.Waits, c.MaxWait = true, 7*time.Second
		}),
		"k 5 3 10 WARMUP 4 COLD 1.5": with(func(c *tokenbucket.Call) {
			c.Mode, c.Warmup, c.Cold = tokenbucket.Warmup, 4*time.Second, 1.5
		}),
	} {
		call := tokenbucket.Call{MaxWait: 99, Charge: tokenbucket.Force}
		require.Equal(t, resp.Error(""), Acquire(acquireArgs(text), &call, nil), text)
		require.Equal(t, want, call, text)
	}
}

func TestAcquireErrors(t *testing.T) {
	arity := resp.WrongArity("tb.acquire")
	for text, want := range map[string]resp.Error{
		"":                                            arity,
		"k":                                           arity,
		"k 5 1":                                       arity,
		"k 0 1 x":                                     resp.ErrNotPositive, // from left to right
		"k x 0 1":                                     resp.ErrNotInteger,
		"k 5 1 0 NOPE":                                resp.ErrNotPositive,
		"k 5 1 10 +1":                                 resp.ErrNotInteger,
		"k 5 1 10 1e3":                                resp.ErrNotInteger,
		"k 5 1 10 -":                                  resp.ErrNotInteger,
		"k 5 1 10 ~":                                  near(""),
		"k 5 1 10 _1":                                 near(" 1"),
		"k 5 1 10 NOPE":                               near("NOPE"),
		"k 5 1 10 1 2":                                near("2"),
		"k 5 1 10 PEEK 2":                             near("2"),
		"k 5 1 10 MS MS":                              near("MS"),
		"k 5 1 10 GREEDY GREEDY":                      near("GREEDY"),
		"k 5 1 10 GREEDY LEAKY":                       near("LEAKY"),
		"k 5 1 10 WARMUP":                             near("WARMUP"),
		"k 5 1 10 WARMUP MS":                          resp.ErrNotInteger,
		"k 5 1 10 WARMUP 0":                           resp.ErrNotPositive,
		"k 5 1 10 COLD 3":                             near("COLD"),
		"k 5 1 10 COLD":                               near("COLD"),
		"k 5 1 10 WARMUP 4 COLD 0":                    resp.ErrNotPositive,
		"k 5 1 10 WARMUP 4 COLD 0.9":                  resp.ErrNotPositive,
		"k 5 1 10 WARMUP 4 COLD 1.":                   resp.ErrNotInteger,
		"k 5 1 10 WARMUP 4 COLD .5":                   resp.ErrNotInteger,
		"k 5 1 10 WARMUP 4 COLD 1e3":                  resp.ErrNotInteger,
		"k 5 1 10 WARMUP 4 COLD 1.e3":                 resp.ErrNotInteger,
		"k 5 1 10 WARMUP 4 PARTIAL":                   near("PARTIAL"),
		"k 5 1 10 WARMUP 4 INIT 1":                    near("INIT"),
		"k 5 1 10 WARMUP 4 DEBT":                      near("DEBT"),
		"k 5 1 10 LEAKY DEBT":                         near("DEBT"),
		"k 5 1 10 INTERVAL DEBT":                      near("DEBT"),
		"k 5 1 10 LEAKY INIT 1":                       near("INIT"),
		"k 5 1 10 DEBT PARTIAL":                       near("PARTIAL"),
		"k 5 1 10 INIT":                               near("INIT"),
		"k 5 1 10 INIT -1":                            resp.ErrNotPositive,
		"k 5 1 10 INIT 6":                             resp.ErrNotPositive,
		"k 5 1 10 INIT 01":                            resp.ErrNotInteger,
		"k 5 1 10 PEEK PARTIAL":                       near("PARTIAL"),
		"k 5 1 10 PEEK FORCE":                         near("FORCE"),
		"k 5 1 10 PARTIAL FORCE":                      near("FORCE"),
		"k 5 1 10 WAIT":                               near("WAIT"),
		"k 5 1 10 WAIT 1 PARTIAL":                     near("PARTIAL"),
		"k 5 1 10 WAIT 1 FORCE":                       near("FORCE"),
		"k 5 1 10 WAIT 1 BLOCK 1":                     near("BLOCK"),
		"k 5 1 10 WAIT -1":                            resp.ErrTimeoutNegative,
		"k 5 1 10 WAIT 1.5":                           resp.ErrNotInteger,
		"k 5 1 10 BLOCK 1 PARTIAL":                    near("PARTIAL"),
		"k 5 1 10 BLOCK 1 FORCE":                      near("FORCE"),
		"k 5 1 10 BLOCK 1 PEEK":                       near("PEEK"),
		"k 5 1 10 BLOCK":                              near("BLOCK"),
		"k 5 1 10 BLOCK -1":                           resp.ErrTimeoutNegative,
		"k 5 1 10 BLOCK x":                            resp.ErrTimeoutNotFloat,
		"k 5 1 10 BLOCK inf":                          resp.ErrTimeoutNotFloat,
		"k 5 1 10 BLOCK nan":                          resp.ErrTimeoutNotFloat,
		"k 5 1 10 BLOCK 0x1p3":                        resp.ErrTimeoutNotFloat,
		"k 5 1 10 BLOCK ~":                            resp.ErrTimeoutNotFloat,
		"k 5 1 10 BLOCK _1":                           resp.ErrTimeoutNotFloat,
		"k 5 1000000001 1":                            resp.ErrRateTooHigh,
		"k 5 1000001 1 MS":                            resp.ErrRateTooHigh,
		"k 1000000000 1 86400":                        resp.ErrOverflow,
		"k 5 1 1000000 999999999999 DEBT":             resp.ErrOverflow,
		"k 5 1 10 WARMUP 2305843010":                  resp.ErrOverflow,
		"k 1 1 1 WARMUP 1 COLD 9223372036854775807":   resp.ErrOverflow,
		"k 1 1 1 WARMUP 1 COLD 9223372036854775808":   resp.ErrNotInteger,
		"k 5 1 10 x y z":                              near("x"),
		"k 9223372036854775807 9223372036854775807 1": resp.ErrRateTooHigh,
		"k 9223372036854775807 1 9223372036854775807": resp.ErrOverflow,
		"k 1 1 9223372036854775807":                   resp.ErrOverflow,
		"k 5 1 10 9223372036854775807 DEBT":           resp.ErrOverflow,
	} {
		var call tokenbucket.Call
		require.Equal(t, want, resp.Bare(Acquire(acquireArgs(text), &call, nil)), text)
	}
}

// TestAcquireNumberEdges tests every edge case of an integer for every numeric argument.
func TestAcquireNumberEdges(t *testing.T) {
	const huge = "9223372036854775807"
	edges := map[string]int64{
		"-9223372036854775808": math.MinInt64, "-9223372036854775807": math.MinInt64 + 1, "-1": -1, "0": 0, "1": 1,
		"9007199254740991": 1<<53 - 1, "9007199254740992": 1 << 53, "9007199254740993": 1<<53 + 1,
		"9223372036854775806": math.MaxInt64 - 1, huge: math.MaxInt64,
	}
	malformed := []string{
		"9223372036854775808", "-9223372036854775809", "99999999999999999999", "1e3", "+1", "_1", "1_", "~",
		"01", "-0", "1.0", "x", "0x10",
	}
	positive := func(n int64) bool { return n > 0 }
	for place, s := range map[string]struct {
		accepts func(int64) bool
		refuses resp.Error
	}{
		"k # 1 1":             {positive, resp.ErrNotPositive},
		"k 1 # " + huge:       {positive, resp.ErrNotPositive},
		"k 1 1 #":             {positive, resp.ErrNotPositive},
		"k 1 1 1 #":           {func(int64) bool { return true }, ""},
		"k 1 1 1 WARMUP # MS": {positive, resp.ErrNotPositive},
		"k 1 1 1 INIT #":      {func(n int64) bool { return n == 0 || n == 1 }, resp.ErrNotPositive},
		"k 1 1 1 WAIT #":      {func(n int64) bool { return n >= 0 }, resp.ErrTimeoutNegative},
	} {
		for edge, n := range edges {
			var call tokenbucket.Call
			err := resp.Bare(Acquire(acquireArgs(strings.Replace(place, "#", edge, 1)), &call, nil))
			if s.accepts(n) {
				require.Contains(t, []resp.Error{"", resp.ErrOverflow}, err, "%s: %s", place, edge)
			} else {
				require.Equal(t, s.refuses, err, "%s: %s", place, edge)
			}
		}
		for _, edge := range malformed {
			var call tokenbucket.Call
			err := resp.Bare(Acquire(acquireArgs(strings.Replace(place, "#", edge, 1)), &call, nil))
			isOption := place == "k 1 1 1 #" && (edge == "_1" || edge == "~" || edge == "x")
			if isOption {
				require.Equal(t, near(string(acquireArgs(edge)[0])), err, "%s: %s", place, edge)
			} else {
				require.Equal(t, resp.ErrNotInteger, err, "%s: %s", place, edge)
			}
		}
	}
}

// TestAcquireWaits: a wait beyond int64 nanoseconds is unlimited; BLOCK has its own rules.
func TestAcquireWaits(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"k 5 1 1 WAIT 9223372036":          9223372036 * time.Second,
		"k 5 1 1 WAIT 9223372037":          tokenbucket.NoLimit,
		"k 5 1 1 WAIT 9223372036854775807": tokenbucket.NoLimit,
		"k 5 1 1 BLOCK 0.3":                300 * time.Millisecond,
		"k 5 1 1 BLOCK 0.0000000001":       1, // not 0, which is unlimited
		"k 5 1 1 BLOCK 0.0":                tokenbucket.NoLimit,
		"k 5 1 1 MS BLOCK 1.5":             1500 * time.Microsecond,
		"k 5 1 1 BLOCK 1.5 MS":             1500 * time.Microsecond,
	} {
		var call tokenbucket.Call
		require.Equal(t, resp.Error(""), Acquire(acquireArgs(text), &call, nil), text)
		require.Equal(t, want, call.MaxWait, text)
	}
}

func TestBucketClause(t *testing.T) {
	var r Room
	parse := func(line string) resp.Error {
		_, err := r.Parse(acquireArgs(line), nil, Options{Unit: time.Millisecond})
		return err
	}
	for text, want := range map[string]resp.Error{
		"5 3 10":                "",
		"5 3 10 2 INTERVAL":     "",
		"5 3 10 -2 GREEDY":      "",
		"5 3 10 DEBT INIT 0":    "",
		"5 3":                   near("TB"),
		"":                      near("TB"),
		"5 x 10":                resp.ErrNotInteger,
		"5 0 10":                resp.ErrNotPositive,
		"5 3 10 LEAKY":          near("LEAKY"),
		"5 3 10 WARMUP 4":       near("WARMUP"),
		"5 3 10 COLD 4":         near("COLD"),
		"5 3 10 WAIT 4":         near("WAIT"),
		"5 3 10 BLOCK 4":        near("BLOCK"),
		"5 3 10 MS":             near("MS"),
		"5 3 10 PEEK":           near("PEEK"),
		"5 3 10 PARTIAL":        near("PARTIAL"),
		"5 3 10 FORCE":          near("FORCE"),
		"5 3 10 INTERVAL DEBT":  near("DEBT"),
		"5 3 10 1 2":            near("2"),
		"5 1000001 1":           resp.ErrRateTooHigh,
		"5000000000 1 86400000": resp.ErrOverflow,
	} {
		require.Equal(t, want, resp.Bare(parse("TB "+text)), text)
	}
	require.Equal(t, resp.Error(""), parse("TB 5 3 10 2 INTERVAL INIT 1"))
	require.Equal(t, tokenbucket.Call{
		Mode: tokenbucket.Interval, Capacity: 5, Count: 3, Period: 10 * time.Millisecond,
		Interval: 3333333, Quantity: 2, Init: 1, Millis: true,
	}, r.Bucket)
}

func TestAcquireAllocatesNothing(t *testing.T) {
	args := acquireArgs("k 100 10 1 3 INTERVAL WAIT 5 MS")
	var call tokenbucket.Call
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = Acquire(args, &call, nil) }))
}
