package clause

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/resp"
)

func TestLeases(t *testing.T) {
	acquire := func(member string, most int64, lease time.Duration) concurrency.Call {
		return concurrency.Call{Op: concurrency.Acquire, Member: []byte(member), Limit: most, Lease: lease, MaxMembers: 7}
	}
	with := func(c concurrency.Call, change func(*concurrency.Call)) concurrency.Call {
		change(&c)
		return c
	}
	for line, want := range map[string]concurrency.Call{
		"cc.acquire k 2 10 m":                                      acquire("m", 2, 10*time.Second),
		"cc.acquire k 9223372036854775807 2305843009 m":            acquire("m", 1<<63-1, 2305843009*time.Second),
		"cc.acquire k 9007199254740993 2305843009213 m MS":         with(acquire("m", 1<<53+1, 2305843009213*time.Millisecond), func(c *concurrency.Call) { c.Millis = true }),
		"cc.acquire k 2 10 m MS":                                   with(acquire("m", 2, 10*time.Millisecond), func(c *concurrency.Call) { c.Millis = true }),
		"cc.acquire k 2 10 m peek":                                 with(acquire("m", 2, 10*time.Second), func(c *concurrency.Call) { c.Peek = true }),
		"cc.acquire k 2 10 PEEK Peek ms":                           with(acquire("PEEK", 2, 10*time.Millisecond), func(c *concurrency.Call) { c.Peek, c.Millis = true, true }),
		"cc.acquire k 2 10 BLOCK BLOCK 1.5":                        with(acquire("BLOCK", 2, 10*time.Second), func(c *concurrency.Call) { c.Block, c.Timeout = true, 1500*time.Millisecond }),
		"cc.acquire k 2 10 m BLOCK 1.5 MS":                         with(acquire("m", 2, 10*time.Millisecond), func(c *concurrency.Call) { c.Block, c.Timeout, c.Millis = true, 1500*time.Microsecond, true }),
		"cc.acquire k 2 10 m MS BLOCK 0":                           with(acquire("m", 2, 10*time.Millisecond), func(c *concurrency.Call) { c.Block, c.Millis = true, true }),
		"cc.release k m":                                           {Op: concurrency.Release, Member: []byte("m")},
		"cc.release k MS":                                          {Op: concurrency.Release, Member: []byte("MS")},
		"cc.renew k m 10":                                          {Op: concurrency.Renew, Member: []byte("m"), Lease: 10 * time.Second},
		"cc.renew k MS 10 ms":                                      {Op: concurrency.Renew, Member: []byte("MS"), Lease: 10 * time.Millisecond, Millis: true},
		"cc.acquire k 1 1 " + strings.Repeat("m", 1024) + " MS":    with(acquire(strings.Repeat("m", 1024), 1, time.Millisecond), func(c *concurrency.Call) { c.Millis = true }),
		"cc.release k " + strings.Repeat("m", 1024):                {Op: concurrency.Release, Member: []byte(strings.Repeat("m", 1024))},
		"cc.renew k " + strings.Repeat("m", 1024) + " 2305843009 ": {Op: concurrency.Renew, Member: []byte(strings.Repeat("m", 1024)), Lease: 2305843009 * time.Second},
	} {
		got, err := parseLeaseLine(strings.Fields(line))
		require.Empty(t, err, line)
		require.Equal(t, want, got, line)
	}
	got, err := parseLeaseLine([]string{"cc.acquire", "", "2", "10", ""})
	require.Empty(t, err)
	require.Equal(t, acquire("", 2, 10*time.Second), got, "an empty member is a member")
}

// parseLeaseLine calls the parser of the command in words[0].
func parseLeaseLine(words []string) (concurrency.Call, resp.Error) {
	c := concurrency.Call{Limit: -1}
	args := splitWords(words[1:]...)
	var err resp.Error
	switch words[0] {
	case "cc.acquire":
		err = LeaseAcquire(args, 7, &c)
	case "cc.release":
		err = LeaseRelease(args, &c)
	case "cc.renew":
		err = LeaseRenew(args, &c)
	}
	return c, resp.Bare(err)
}

func TestLeaseErrors(t *testing.T) {
	long := strings.Repeat("m", 1025)
	for line, want := range map[string]resp.Error{
		"cc.acquire":                             resp.WrongArity("cc.acquire"),
		"cc.acquire k 2 10":                      resp.WrongArity("cc.acquire"),
		"cc.release k":                           resp.WrongArity("cc.release"),
		"cc.release k m n":                       resp.WrongArity("cc.release"),
		"cc.renew k m":                           resp.WrongArity("cc.renew"),
		"cc.acquire k 2 10 m n":                  near("n"),
		"cc.acquire k 2 10 m FORCE":              near("FORCE"),
		"cc.acquire k 2 10 m PARTIAL":            near("PARTIAL"),
		"cc.acquire k 2 10 m WAIT 1":             near("WAIT"),
		"cc.acquire k 2 10 m 1":                  near("1"),
		"cc.acquire k 2 10 m MS MS":              near("MS"),
		"cc.acquire k 2 10 m PEEK PEEK":          near("PEEK"),
		"cc.acquire k 2 10 m BLOCK":              near("BLOCK"),
		"cc.acquire k 2 10 m BLOCK 1 BLOCK 1":    near("BLOCK"),
		"cc.acquire k 2 10 m PEEK BLOCK 1":       near("BLOCK"),
		"cc.acquire k 2 10 m BLOCK 1 PEEK":       near("PEEK"),
		"cc.acquire k 2 10 m BLOCK -1":           resp.ErrTimeoutNegative,
		"cc.acquire k 2 10 m BLOCK x":            resp.ErrTimeoutNotFloat,
		"cc.acquire k 2 10 m BLOCK MS":           resp.ErrTimeoutNotFloat,
		"cc.acquire k 2 2305843010 m":            resp.ErrLeaseTooLong,
		"cc.acquire k 2 2305843009214 m MS":      resp.ErrLeaseTooLong,
		"cc.acquire k 2 9223372036854775807 m":   resp.ErrLeaseTooLong,
		"cc.renew k m 9223372036854775807":       resp.ErrLeaseTooLong,
		"cc.renew k m 10 x":                      near("x"),
		"cc.renew k m 10 MS MS":                  near("MS"),
		"cc.renew k m 10 PEEK":                   near("PEEK"),
		"cc.acquire k 2 10 " + long:              resp.ErrMemberTooLong,
		"cc.release k " + long:                   resp.ErrMemberTooLong,
		"cc.renew k " + long + " 10":             resp.ErrMemberTooLong,
		"cc.acquire k 0 x m n":                   resp.ErrNotPositive,
		"cc.acquire k x 0 m n":                   resp.ErrNotInteger,
		"cc.acquire k 1 0 m n":                   resp.ErrNotPositive,
		"cc.acquire k 1 9223372036854775807 m n": near("n"),
	} {
		c, err := parseLeaseLine(strings.Fields(line))
		require.Equal(t, want, err, line)
		require.Equal(t, concurrency.Call{Limit: -1}, c, "%q leaves the call alone", line)
	}
}

func TestLeaseClause(t *testing.T) {
	long := strings.Repeat("m", 1024)
	parse := func(line, member string, unit time.Duration) (concurrency.Call, resp.Error) {
		r := Room{Lease: concurrency.Call{Op: concurrency.Renew, Member: []byte("x"), Peek: true, Block: true}}
		_, err := r.Parse(words(line), []byte("k"), Options{Unit: unit, MaxMembers: 7})
		if err == "" {
			require.Nil(t, r.Lease.Member)
			err = r.SetMember([]byte(member))
		}
		return r.Lease, resp.Bare(err)
	}
	for _, unit := range []time.Duration{time.Second, time.Millisecond} {
		for _, member := range []string{"m", "", "MS", "CC", long} {
			got, err := parse("CC 2 10", member, unit)
			require.Empty(t, err)
			require.Equal(t, concurrency.Call{Limit: 2, Lease: 10 * unit, Member: []byte(member), MaxMembers: 7, Millis: unit == time.Millisecond}, got)
		}
	}
	for line, want := range map[string]resp.Error{
		"cc":                       near("cc"),
		"CC 2":                     near("CC"),
		"CC 2 10 1":                near("1"),
		"CC 2 10 MS":               near("MS"),
		"CC 2 10 BLOCK 1":          near("BLOCK"),
		"CC x 0":                   resp.ErrNotInteger,
		"CC 0 x":                   resp.ErrNotPositive,
		"CC 1 0":                   resp.ErrNotPositive,
		"CC 1 -1":                  resp.ErrNotPositive,
		"CC 1 1e3":                 resp.ErrNotInteger,
		"CC 1 2305843010":          resp.ErrLeaseTooLong,
		"CC 1 9223372036854775807": resp.ErrLeaseTooLong,
		"CC 1 9223372036854775808": resp.ErrNotInteger,
	} {
		_, err := parse(line, "m", time.Second)
		require.Equal(t, want, err, line)
	}
	_, err := parse("CC 2 10", long+"m", time.Second)
	require.Equal(t, resp.ErrMemberTooLong, err)
}

// TestLeaseIntegers tests every edge case of an integer for every argument.
func TestLeaseIntegers(t *testing.T) {
	for text, want := range map[string]resp.Error{
		"-9223372036854775808": resp.ErrNotPositive, "-1": resp.ErrNotPositive, "0": resp.ErrNotPositive,
		"1": "", "2305843009": "", "-9223372036854775809": resp.ErrNotInteger,
		"9223372036854775808": resp.ErrNotInteger, "99999999999999999999": resp.ErrNotInteger,
		"1e3": resp.ErrNotInteger, "+1": resp.ErrNotInteger, " 1": resp.ErrNotInteger, "1 ": resp.ErrNotInteger,
		"01": resp.ErrNotInteger, "-0": resp.ErrNotInteger, "1.0": resp.ErrNotInteger, "": resp.ErrNotInteger,
		"0x1": resp.ErrNotInteger, "１": resp.ErrNotInteger, "1\x00": resp.ErrNotInteger,
	} {
		for _, words := range [][]string{
			{"cc.acquire", "k", text, "10", "m"}, {"cc.acquire", "k", "2", text, "m"}, {"cc.renew", "k", "m", text},
		} {
			_, err := parseLeaseLine(words)
			require.Equal(t, want, err, "%q", words)
		}
	}
	for _, text := range []string{"9007199254740991", "9007199254740993", "9223372036854775806", "9223372036854775807"} {
		_, err := parseLeaseLine([]string{"cc.acquire", "k", text, "10", "m"})
		require.Empty(t, err)
		_, err = parseLeaseLine([]string{"cc.acquire", "k", "2", text, "m"})
		require.Equal(t, resp.ErrLeaseTooLong, err)
	}
}

func TestLeaseAllocatesNothing(t *testing.T) {
	args := splitWords("k", "2", "10", "m", "MS", "BLOCK", "1.5")
	var c concurrency.Call
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = LeaseAcquire(args, 0, &c) }))
}

// FuzzLeaseAcquire: for any arguments, the result is a valid call, or an error that does not change
// the call.
func FuzzLeaseAcquire(f *testing.F) {
	f.Add([]byte("2"), []byte("10"), []byte("m"), []byte("MS PEEK"))
	f.Add([]byte("9223372036854775807"), []byte("-1"), []byte(""), []byte("BLOCK 1e9 ms"))
	f.Add([]byte("1"), []byte("2305843009"), []byte("MS"), []byte("block -0 BLOCK"))
	f.Fuzz(func(t *testing.T, most, lease, member, options []byte) {
		args := [][]byte{[]byte("k"), most, lease, member}
		for _, word := range strings.Fields(string(options)) {
			args = append(args, []byte(word))
		}
		var c concurrency.Call
		if err := LeaseAcquire(args, 0, &c); err != "" {
			require.Equal(t, concurrency.Call{}, c)
			require.NotContains(t, string(err), "\n")
			return
		}
		require.NoError(t, c.Validate())
		require.GreaterOrEqual(t, c.Timeout, time.Duration(0))
		require.Equal(t, member, c.Member)
	})
}
