package clause

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/slidingwindow"
)

func TestSlidingWindow(t *testing.T) {
	base := slidingwindow.Call{
		Mode: slidingwindow.Counter, Limit: 5, Window: 10 * time.Second, Quantity: 1, LogMaxEntries: 100_000,
	}
	for options, change := range map[string]func(*slidingwindow.Call){
		"":          func(*slidingwindow.Call) {},
		"7":         func(c *slidingwindow.Call) { c.Quantity = 7 },
		"0":         func(c *slidingwindow.Call) { c.Quantity = 0 },
		"-3":        func(c *slidingwindow.Call) { c.Quantity = -3 },
		"COUNTER":   func(*slidingwindow.Call) {},
		"fixed":     func(c *slidingwindow.Call) { c.Mode = slidingwindow.Fixed },
		"2 Log":     func(c *slidingwindow.Call) { c.Quantity, c.Mode = 2, slidingwindow.Log },
		"BUCKETS 6": func(c *slidingwindow.Call) { c.Mode, c.Slots = slidingwindow.Buckets, 6 },
		"EVEN PEEK BUCKETS 1000": func(c *slidingwindow.Call) {
			c.Mode, c.Slots, c.Even, c.Charge = slidingwindow.Buckets, 1000, true, slidingwindow.Peek
		},
		"ANCHOR FIRST": func(c *slidingwindow.Call) { c.First = true },
		"anchor key": func(c *slidingwindow.Call) {
			c.Phase = slidingwindow.PhaseOf(slidingwindow.HashKey([]byte("k")), 10*time.Second)
		},
		"ANCHOR 13":     func(c *slidingwindow.Call) { c.Phase = 3 * time.Second },
		"ANCHOR -1":     func(c *slidingwindow.Call) { c.Phase = 9 * time.Second },
		"PENALIZE":      func(c *slidingwindow.Call) { c.Penalize = true },
		"PENALIZE PEEK": func(c *slidingwindow.Call) { c.Penalize, c.Charge = true, slidingwindow.Peek },
		"PARTIAL":       func(c *slidingwindow.Call) { c.Charge = slidingwindow.Partial },
		"FORCE":         func(c *slidingwindow.Call) { c.Charge = slidingwindow.Force },
		"MS":            func(c *slidingwindow.Call) { c.Millis, c.Window = true, 10*time.Millisecond },
		"BLOCK 0":       func(c *slidingwindow.Call) { c.Block = true },
		"BLOCK 1.5":     func(c *slidingwindow.Call) { c.Block, c.Timeout = true, 1500*time.Millisecond },
		"ANCHOR 13 MS": func(c *slidingwindow.Call) {
			c.Millis, c.Window, c.Phase = true, 10*time.Millisecond, 3*time.Millisecond
		},
		"MS BLOCK 1.5": func(c *slidingwindow.Call) { c.Millis, c.Window, c.Block, c.Timeout = true, 10e6, true, 1500e3 },
		"-1 MS FORCE": func(c *slidingwindow.Call) {
			c.Quantity, c.Millis, c.Window, c.Charge = -1, true, 10e6, slidingwindow.Force
		},
		"FIXED BLOCK 1e-1": func(c *slidingwindow.Call) {
			c.Mode, c.Block, c.Timeout = slidingwindow.Fixed, true, 100*time.Millisecond
		},
	} {
		want := base
		change(&want)
		got := slidingwindow.Call{Even: true, Penalize: true, Quantity: 99} // earlier values are overwritten
		require.Empty(t, SlidingWindow(words("k 5 10 "+options), 100_000, &got, nil), options)
		require.Equal(t, want, got, options)
	}
}

func TestSlidingWindowErrors(t *testing.T) {
	for line, want := range map[string]resp.Error{
		"":                                   resp.WrongArity("sw.allow"),
		"k":                                  resp.WrongArity("sw.allow"),
		"k 5":                                resp.WrongArity("sw.allow"),
		"k 5 10 LIFO":                        near("LIFO"),
		"k 5 10 1 2":                         near("2"),
		"k 5 10 FIXED 2":                     near("2"),
		"k 5 10 FIXED LOG":                   near("LOG"),
		"k 5 10 COUNTER COUNTER":             near("COUNTER"),
		"k 5 10 EVEN":                        near("EVEN"),
		"k 5 10 FIXED EVEN":                  near("EVEN"),
		"k 5 10 BUCKETS 5 EVEN EVEN":         near("EVEN"),
		"k 5 10 BUCKETS":                     near("BUCKETS"),
		"k 5 10 BUCKETS EVEN":                resp.ErrNotInteger,
		"k 5 10 BUCKETS 05":                  resp.ErrNotInteger,
		"k 5 10 BUCKETS 1":                   resp.ErrNotPositive,
		"k 5 10 BUCKETS 0":                   resp.ErrNotPositive,
		"k 5 10 BUCKETS -5":                  resp.ErrNotPositive,
		"k 5 10 BUCKETS 1001":                resp.ErrNotPositive,
		"k 5 10 BUCKETS 9223372036854775807": resp.ErrNotPositive,
		"k 5 10 ANCHOR":                      near("ANCHOR"),
		"k 5 10 ANCHOR LAST":                 resp.ErrNotInteger,
		"k 5 10 ANCHOR FIRST ANCHOR 5":       near("ANCHOR"),
		"k 5 10 LOG ANCHOR FIRST":            near("ANCHOR"),
		"k 5 10 ANCHOR KEY LOG":              near("LOG"),
		"k 5 10 ANCHOR 0 LOG":                near("LOG"),
		"k 5 10 ANCHOR 9223372037":           resp.ErrNotInteger,
		"k 5 10 ANCHOR -9223372037":          resp.ErrNotInteger,
		"k 5 10 ANCHOR 9223372036855 MS":     resp.ErrNotInteger,
		"k 5 10 MS MS":                       near("MS"),
		"k 5 10 PENALIZE PENALIZE":           near("PENALIZE"),
		"k 5 10 PENALIZE FORCE":              near("FORCE"),
		"k 5 10 PARTIAL PENALIZE":            near("PENALIZE"),
		"k 5 10 PEEK FORCE":                  near("FORCE"),
		"k 5 10 PARTIAL PEEK":                near("PEEK"),
		"k 5 10 FORCE FORCE":                 near("FORCE"),
		"k 5 10 BLOCK":                       near("BLOCK"),
		"k 5 10 BLOCK 1 BLOCK 1":             near("BLOCK"),
		"k 5 10 BLOCK 1 PEEK":                near("PEEK"),
		"k 5 10 BLOCK 1 PARTIAL":             near("PARTIAL"),
		"k 5 10 FORCE BLOCK 1":               near("BLOCK"),
		"k 5 10 BLOCK 1 PENALIZE":            near("PENALIZE"),
		"k 5 10 BLOCK -1":                    resp.ErrTimeoutNegative,
		"k 5 10 BLOCK x":                     resp.ErrTimeoutNotFloat,
		"k 5 2305843009":                     "",
		"k 5 2305843010":                     resp.ErrOverflow,
		"k 5 2305843009213 MS":               "",
		"k 5 2305843009214 MS":               resp.ErrOverflow,
		"k 100000 10 LOG":                    "",
		"k 100001 10 LOG":                    resp.ErrLogTooLong,
		"k 100001 10 LOG PEEK":               resp.ErrLogTooLong,
		"k 100001 10":                        "",
	} {
		var c slidingwindow.Call
		require.Equal(t, want, resp.Bare(SlidingWindow(words(line), 100_000, &c, nil)), line)
		require.Equal(t, want != "", c == slidingwindow.Call{}, "a call that fails is left alone: %s", line)
	}
}

// integerEdges are numbers and texts that every argument is tested with.
var integerEdges = []string{
	"-9223372036854775808", "-9223372036854775807", "-1", "-0", "0", "1", "01", "9007199254740991", "9007199254740993",
	"9223372036854775806", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "12345678901234567890",
	"1e3", "+1", " 1", "1 ", "", "1.0", "-", "+", "0x1", "١",
}

func TestSlidingWindowArgumentEdges(t *testing.T) {
	for _, edge := range integerEdges {
		n, err := strconv.ParseInt(edge, 10, 64)
		isInt := err == nil && strconv.FormatInt(n, 10) == edge
		call := func(args ...string) (slidingwindow.Call, resp.Error) {
			var c slidingwindow.Call
			var b [][]byte
			for _, arg := range args {
				b = append(b, []byte(arg))
			}
			err := resp.Bare(SlidingWindow(b, 0, &c, nil))
			return c, err
		}
		positive := func(most int64, beyond resp.Error) resp.Error {
			switch {
			case !isInt:
				return resp.ErrNotInteger
			case n < 1:
				return resp.ErrNotPositive
			case n > most:
				return beyond
			}
			return ""
		}

		_, got := call("k", edge, "10")
		require.Equal(t, positive(math.MaxInt64, ""), got, "limit %q", edge)
		_, got = call("k", edge, "10", "LOG")
		require.Equal(t, positive(100_000, resp.ErrLogTooLong), got, "limit %q of a log", edge)
		_, got = call("k", "5", edge)
		require.Equal(t, positive(1<<61/1_000_000_000, resp.ErrOverflow), got, "window %q", edge)
		_, got = call("k", "5", edge, "MS")
		require.Equal(t, positive(1<<61/1_000_000, resp.ErrOverflow), got, "window %q ms", edge)

		c, got := call("k", "5", "10", edge)
		switch {
		case isInt:
			require.Empty(t, got, "quantity %q", edge)
			require.Equal(t, n, c.Quantity)
		case edge != "" && strings.ContainsAny(edge[:1], "0123456789+-"):
			require.Equal(t, resp.ErrNotInteger, got, "quantity %q", edge)
		default:
			require.Equal(t, near(edge), got, "quantity %q", edge)
		}

		_, got = call("k", "5", "10", "ANCHOR", edge)
		if isInt && n <= math.MaxInt64/1_000_000_000 && n >= math.MinInt64/1_000_000_000 {
			require.Empty(t, got, "anchor %q", edge)
		} else {
			require.Equal(t, resp.ErrNotInteger, got, "anchor %q", edge)
		}
		_, got = call("k", "5", "10", "BUCKETS", edge)
		if isInt {
			require.Equal(t, resp.ErrNotPositive, got, "slots %q", edge)
		} else {
			require.Equal(t, resp.ErrNotInteger, got, "slots %q", edge)
		}
	}
}

func TestWindowClause(t *testing.T) {
	var got, want slidingwindow.Call
	parse := func(line string, unit time.Duration) resp.Error {
		r := Room{Window: got}
		c, err := r.Parse(words(line), []byte("k"), Options{Unit: unit})
		if err == "" {
			require.Same(t, &r.Window, c.Window)
		}
		got = r.Window
		return err
	}
	for clause, line := range map[string]string{
		"5 10":                              "k 5 10 MS",
		"5 10 3":                            "k 5 10 3 MS",
		"5 10 -3 FIXED ANCHOR 7":            "k 5 10 -3 FIXED ANCHOR 7 MS",
		"5 10 BUCKETS 4 EVEN":               "k 5 10 BUCKETS 4 EVEN MS",
		"5 10 ANCHOR KEY BUCKETS 4":         "k 5 10 ANCHOR KEY BUCKETS 4 MS",
		"9223372036854775807 2305843009213": "k 9223372036854775807 2305843009213 MS",
	} {
		require.Empty(t, SlidingWindow(words(line), 0, &want, nil), line)
		require.Empty(t, parse("SW "+clause, time.Millisecond), clause)
		require.Equal(t, want, got, clause)
	}
	require.Empty(t, parse("SW 5 10", time.Second))
	require.Equal(t, 10*time.Second, got.Window)
	for clause, err := range map[string]resp.Error{
		"":              near("SW"),
		"5":             near("SW"),
		"5 10 MS":       near("MS"),
		"5 10 PEEK":     near("PEEK"),
		"5 10 PENALIZE": near("PENALIZE"),
		"5 10 PARTIAL":  near("PARTIAL"),
		"5 10 FORCE":    near("FORCE"),
		"5 10 BLOCK 1":  near("BLOCK"),
		"5 10 LOG LOG":  near("LOG"),
		"0 10":          resp.ErrNotPositive,
		"5 x":           resp.ErrNotInteger,
		"5 10 +1":       resp.ErrNotInteger,
		"5 2305843010":  resp.ErrOverflow,
		"100001 10 LOG": resp.ErrLogTooLong,
	} {
		require.Equal(t, err, resp.Bare(parse("SW "+clause, time.Second)), clause)
	}
}

func TestSlidingWindowAllocatesNothing(t *testing.T) {
	var c slidingwindow.Call
	args := words("k 5 10 3 BUCKETS 6 EVEN ANCHOR KEY PENALIZE MS")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if SlidingWindow(args, 0, &c, nil) != "" {
			t.Error("a sound call")
		}
	}))
}

// FuzzSlidingWindow: for any arguments, the result is an error or a valid call.
func FuzzSlidingWindow(f *testing.F) {
	f.Add("k 5 10 3 BUCKETS 6 EVEN ANCHOR KEY PENALIZE MS")
	f.Add("k 100 60 80 FIXED RESERVE a 30")
	f.Add("k 5 10 MS RESERVE a 999 PARTIAL")
	f.Add("k 5 10 2 KEEP 40% LOG")
	f.Add("k 5 10 -3 LOG BLOCK 1.5 MS")
	f.Add("k 9223372036854775807 2305843009 ANCHOR -9223372036 FIXED FORCE")
	f.Fuzz(func(t *testing.T, line string) {
		var args [][]byte
		for _, arg := range strings.Split(line, " ") {
			args = append(args, []byte(arg))
		}
		var (
			c slidingwindow.Call
			o CallOptions
		)
		if err := SlidingWindow(args, 0, &c, &o); err != "" {
			require.Equal(t, slidingwindow.Call{}, c)
			return
		}
		require.NoError(t, c.Validate())
		checkIdentity(t, &o.Identity, c.Quantity)
		checkKeep(t, o.Keep)
		require.GreaterOrEqual(t, c.Timeout, time.Duration(0))
	})
}
