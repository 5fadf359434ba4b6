package clause

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// identityOf parses options after the arguments of TB.ACQUIRE and of SW.ALLOW, and returns what both have
// in common. quantity is that of the calls.
func identityOf(t *testing.T, quantity, options string) (Identity, resp.Error) {
	t.Helper()
	var bucket, window CallOptions
	err := Acquire(acquireArgs("k 9 1 1 "+quantity+" "+options), new(tokenbucket.Call), &bucket)
	require.Equal(t, err, SlidingWindow(acquireArgs("k 9 1 "+quantity+" "+options), 0, new(slidingwindow.Call), &window), options)
	if err == "" {
		require.Equal(t, bucket, window, options)
	}
	return bucket.Identity, err
}

func TestIdentity(t *testing.T) {
	long := strings.Repeat("x", 64)
	for options, want := range map[string]Identity{
		"":                               {},
		"MS FORCE":                       {},
		"ID a":                           {Token: []byte("a")},
		"ID RESERVE":                     {Token: []byte("RESERVE")},
		"RESERVE a 1":                    {Token: []byte("a"), TTL: time.Second},
		"reserve ID 86400":               {Token: []byte("ID"), TTL: 24 * time.Hour},
		"RESERVE MS 1000 MS":             {Token: []byte("MS"), TTL: time.Second},
		"MS RESERVE a 1001":              {Token: []byte("a"), TTL: 1001 * time.Millisecond},
		"RESERVE a 86400000 MS FORCE":    {Token: []byte("a"), TTL: 24 * time.Hour},
		"PARTIAL RESERVE " + long + " 2": {Token: []byte(long), TTL: 2 * time.Second},
	} {
		got, err := identityOf(t, "1", options)
		require.Empty(t, err, options)
		require.Equal(t, want, got, options)
	}
	got := CallOptions{Identity{Token: []byte("before"), TTL: 1}, Keep{Units: 1}}
	require.Empty(t, Acquire(acquireArgs("k 9 1 1 WAIT 5 RESERVE a 3"), new(tokenbucket.Call), &got))
	require.Equal(t, CallOptions{Identity: Identity{Token: []byte("a"), TTL: 3 * time.Second}}, got)
}

func TestIdentityErrors(t *testing.T) {
	const (
		ttl      = "ttl is '"
		must     = "', must be from 1 to 86400 seconds, with MS from 1000 to 86400000 milliseconds"
		integer  = string(resp.ErrNotInteger) + ": "
		positive = string(resp.ErrNotPositive) + ": "
	)
	for line, want := range map[string]string{
		"1 RESERVE":                                   string(near("RESERVE")),
		"1 RESERVE a":                                 string(near("RESERVE")),
		"1 RESERVE a 5 RESERVE a 5":                   string(near("RESERVE")),
		"1 RESERVE a 5 ID a":                          string(near("ID")),
		"1 ID a RESERVE a 5":                          string(near("RESERVE")),
		"1 RESERVE a 5 PEEK":                          string(near("PEEK")),
		"1 PEEK RESERVE a 5":                          string(near("RESERVE")),
		"1 RESERVE a 5 BLOCK 1":                       string(near("BLOCK")),
		"1 BLOCK 1 RESERVE a 5":                       string(near("RESERVE")),
		"1 RESERVE a 5 NOSUCH":                        string(near("NOSUCH")),
		"0 RESERVE a 5 PEEK":                          string(near("PEEK")),
		"1 RESERVE ~ 5":                               string(resp.ErrReserveID),
		"1 RESERVE " + strings.Repeat("x", 65) + " 5": string(resp.ErrReserveID),
		"0 RESERVE a 5":                               positive + "quantity is '0', must be at least 1 with RESERVE",
		"-3 RESERVE a 5":                              positive + "quantity is '-3', must be at least 1 with RESERVE",
		"1 RESERVE a x":                               integer + ttl + "x" + must,
		"1 RESERVE a 1.5":                             integer + ttl + "1.5" + must,
		"1 RESERVE a MS":                              integer + ttl + "MS" + must,
		"1 RESERVE a 9223372036854775808":             integer + ttl + "9223372036854775808" + must,
		"1 RESERVE a 0":                               positive + ttl + "0" + must,
		"1 RESERVE a -1":                              positive + ttl + "-1" + must,
		"1 RESERVE a 86401":                           positive + ttl + "86401" + must,
		"1 RESERVE a 9223372036854775807":             positive + ttl + "9223372036854775807" + must,
		"1 RESERVE a -9223372036854775808":            positive + ttl + "-9223372036854775808" + must,
		"1 RESERVE a 999 MS":                          positive + ttl + "999" + must,
		"1 RESERVE a 86400001 MS":                     positive + ttl + "86400001" + must,
	} {
		quantity, options, _ := strings.Cut(line, " ")
		_, err := identityOf(t, quantity, options)
		require.Equal(t, want, string(err), line)
	}
	for _, mode := range []string{"INTERVAL", "LEAKY", "DEBT", "WARMUP 4"} {
		err := Acquire(acquireArgs("k 9 1 1 RESERVE a 5 "+mode), new(tokenbucket.Call), nil)
		require.Equal(t, resp.ErrReserveFamily, err, mode)
	}
	for _, options := range []string{"PENALIZE RESERVE a 5", "RESERVE a 5 PENALIZE"} {
		last := "RESERVE"
		if strings.HasSuffix(options, "PENALIZE") {
			last = "PENALIZE"
		}
		require.Equal(t, near(last), SlidingWindow(words("k 9 1 "+options), 0, new(slidingwindow.Call), nil))
	}
}

func TestSettlements(t *testing.T) {
	commit := func(n ...int64) reservation.Settlement {
		return reservation.Settlement{Op: reservation.Commit, Actuals: n}
	}
	for line, want := range map[string]struct {
		reservation.Settlement
		policy string
	}{
		"COMMIT k a 0":                      {reservation.Settlement{Op: reservation.Commit}, ""},
		"COMMIT k a 9223372036854775807":    {reservation.Settlement{Op: reservation.Commit, Actual: math.MaxInt64}, ""},
		"COMMIT k a 3 POLICY p":             {reservation.Settlement{Op: reservation.Commit, Actual: 3}, "p"},
		"COMMIT k a 3 4 5 policy POLICY":    {commit(3, 4, 5), "POLICY"},
		"COMMIT k a 1 2 3 4 5 6 7 POLICY 8": {commit(1, 2, 3, 4, 5, 6, 7), "8"},
		"COMMIT k a 1 2 3":                  {commit(1, 2, 3), ""},
		"COMMIT k POLICY 3 POLICY p":        {reservation.Settlement{Op: reservation.Commit, Actual: 3}, "p"},
		"CANCEL k a":                        {reservation.Settlement{Op: reservation.Cancel}, ""},
		"CANCEL k POLICY POLICY p":          {reservation.Settlement{Op: reservation.Cancel}, "p"},
		"RENEW k a 86400":                   {reservation.Settlement{Op: reservation.Renew, TTL: reservation.MaxTTL}, ""},
		"RENEW k MS 1000 ms":                {reservation.Settlement{Op: reservation.Renew, TTL: reservation.MinTTL}, ""},
		"RENEW k a 1000 MS POLICY p":        {reservation.Settlement{Op: reservation.Renew, TTL: reservation.MinTTL}, "p"},
		"RENEW k a 1000 POLICY MS MS":       {reservation.Settlement{Op: reservation.Renew, TTL: reservation.MinTTL}, "MS"},
	} {
		s, policy, err := settlement(line)
		require.Empty(t, err, line)
		require.Equal(t, want.Settlement, s, line)
		require.Equal(t, want.policy, string(policy), line)
		require.Equal(t, want.policy == "", policy == nil, line)
	}
	_, policy, err := settlement("CANCEL k a POLICY ~")
	require.Empty(t, err)
	require.Equal(t, []byte{}, policy, "an empty name is a name, which no policy has")
	for line, want := range map[string]resp.Error{
		"COMMIT k a":                       resp.WrongArity("rl.commit"),
		"COMMIT k a 1 2 3 4 5 6 7 8":       near("8"),
		"COMMIT k a 1 NOSUCH":              near("NOSUCH"),
		"COMMIT k a 1 MS":                  near("MS"),
		"COMMIT k a 1 POLICY":              near("POLICY"),
		"COMMIT k a 1 POLICY p 2":          near("2"),
		"COMMIT k a 1 POLICY p POLICY p":   near("POLICY"),
		"COMMIT k a POLICY p":              resp.ErrNotInteger,
		"COMMIT k a 1 -1 POLICY p":         resp.ErrNotPositive,
		"COMMIT k a 1 1.5 POLICY p":        resp.ErrNotInteger,
		"COMMIT k ~ x":                     resp.ErrReserveID,
		"COMMIT k a -1":                    resp.ErrNotPositive,
		"COMMIT k a 9223372036854775808":   resp.ErrNotInteger,
		"COMMIT k a 1 9223372036854775808": resp.ErrNotInteger,
		"COMMIT k a 1.5":                   resp.ErrNotInteger,
		"COMMIT k a +1":                    resp.ErrNotInteger,
		"CANCEL k":                         resp.WrongArity("rl.cancel"),
		"CANCEL k a b":                     near("b"),
		"CANCEL k a POLICY":                near("POLICY"),
		"CANCEL k a POLICY p MS":           near("MS"),
		"CANCEL k ~":                       resp.ErrReserveID,
		"RENEW k a":                        resp.WrongArity("rl.renew"),
		"RENEW k ~ 5":                      resp.ErrReserveID,
		"RENEW k a 0":                      resp.ErrNotPositive,
		"RENEW k a 1 MS":                   resp.ErrNotPositive,
		"RENEW k a 86401":                  resp.ErrNotPositive,
		"RENEW k a x":                      resp.ErrNotInteger,
		"RENEW k a 5 NOSUCH":               near("NOSUCH"),
		"RENEW k a 5 6 POLICY p":           near("6"),
		"RENEW k a 5000 MS MS":             near("MS"),
		"RENEW k a 5 POLICY p POLICY p":    near("POLICY"),
	} {
		_, _, err := settlement(line)
		require.Equal(t, want, resp.Bare(err), line)
	}
	_, _, err = settlement("COMMIT k a -1")
	require.Equal(t, string(resp.ErrNotPositive)+": actual is '-1', must be at least 0", string(err))
}

// settlement parses a line of an operation and its arguments, with room for seven numbers.
func settlement(line string) (s reservation.Settlement, policy []byte, err resp.Error) {
	op, rest, _ := strings.Cut(line, " ")
	parse := map[string]func([][]byte, []int64, *reservation.Settlement) ([]byte, resp.Error){
		"COMMIT": Commit, "CANCEL": CancelReservation, "RENEW": RenewReservation,
	}[op]
	policy, err = parse(acquireArgs(rest), make([]int64, 7), &s)
	return s, policy, err
}

// checkIdentity checks id, which was parsed for a call of the given quantity.
func checkIdentity(t *testing.T, id *Identity, quantity int64) {
	t.Helper()
	require.LessOrEqual(t, len(id.Token), 64)
	require.Equal(t, id.Token != nil, len(id.Token) > 0)
	if id.TTL == 0 {
		return
	}
	require.NotNil(t, id.Token)
	require.Positive(t, quantity)
	require.GreaterOrEqual(t, id.TTL, reservation.MinTTL)
	require.LessOrEqual(t, id.TTL, reservation.MaxTTL)
}

// FuzzSettlement: for any arguments, the result is an error or a settlement within its bounds.
func FuzzSettlement(f *testing.F) {
	for _, line := range []string{
		"k a 300", "k a 30 MS", "k a 86400000 MS", "k a 9223372036854775807", "k a -1", "k a",
		"k a 1 2 3 POLICY p", "k a 5 POLICY p MS", "k POLICY POLICY p",
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		args := bytes.Split(line, []byte(" "))
		for op, parse := range map[reservation.Op]func([][]byte, []int64, *reservation.Settlement) ([]byte, resp.Error){
			reservation.Commit: Commit, reservation.Cancel: CancelReservation, reservation.Renew: RenewReservation,
		} {
			var s reservation.Settlement
			if _, err := parse(args, make([]int64, 3), &s); err != "" {
				continue
			}
			for _, n := range s.Actuals {
				require.GreaterOrEqual(t, n, int64(0))
			}
			require.Equal(t, op, s.Op)
			require.GreaterOrEqual(t, s.Actual, int64(0))
			if op == reservation.Renew {
				require.GreaterOrEqual(t, s.TTL, reservation.MinTTL)
				require.LessOrEqual(t, s.TTL, reservation.MaxTTL)
			}
		}
	})
}
