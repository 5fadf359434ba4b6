package limiters

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/resp"
)

// useWords splits a line into words. "_" stands for an empty word.
func useWords(line string) (words [][]byte) {
	for _, w := range strings.Fields(line) {
		words = append(words, []byte(strings.ReplaceAll(w, "_", "")))
	}
	return words
}

func TestParseUse(t *testing.T) {
	const longest = time.Duration(math.MaxInt64)
	for line, want := range map[string]useCall{
		"api acme":                           {Lookup: ratelimit.Lookup{Call: ratelimit.Call{Quantity: 1}}},
		"api acme 0":                         {Lookup: ratelimit.Lookup{Call: ratelimit.Call{Quantity: 0}}},
		"api acme -9223372036854775808":      {Lookup: ratelimit.Lookup{Call: ratelimit.Call{Quantity: math.MinInt64}}},
		"api acme 9223372036854775807 force": {Lookup: ratelimit.Lookup{Call: ratelimit.Call{Quantity: math.MaxInt64, Mode: ratelimit.Force}}},
		"api acme PEEK":                      {Lookup: ratelimit.Lookup{Call: ratelimit.Call{Quantity: 1, Mode: ratelimit.Peek}}},
		"api acme 7 partial MS":              {Lookup: ratelimit.Lookup{Call: ratelimit.Call{Quantity: 7, Mode: ratelimit.Partial}}, millis: true},
		"api acme WAIT 5":                    {Lookup: ratelimit.Lookup{Call: ratelimit.Call{Quantity: 1, Mode: ratelimit.Wait, MaxWait: 5 * time.Second}}},
		"api acme MS WAIT 5":                 {Lookup: ratelimit.Lookup{Call: ratelimit.Call{Quantity: 1, Mode: ratelimit.Wait, MaxWait: 5 * time.Millisecond}}, millis: true},
		"api acme WAIT 0":                    {Lookup: ratelimit.Lookup{Call: ratelimit.Call{Quantity: 1, Mode: ratelimit.Wait}}},
		"api acme WAIT 9223372036854775807":  {Lookup: ratelimit.Lookup{Call: ratelimit.Call{Quantity: 1, Mode: ratelimit.Wait, MaxWait: longest}}},
		"api acme BLOCK 0":                   {Lookup: ratelimit.Lookup{Call: ratelimit.Call{Quantity: 1, Mode: ratelimit.Block}}},
		"api acme BLOCK 1.5 MEMBER m":        {Lookup: ratelimit.Lookup{Call: ratelimit.Call{Quantity: 1, Mode: ratelimit.Block, MaxWait: 1500 * time.Millisecond, Member: []byte("m")}}},
		"api acme MEMBER WITHDETAILS":        {Lookup: ratelimit.Lookup{Call: ratelimit.Call{Quantity: 1, Member: []byte("WITHDETAILS")}}},
		"api acme MEMBER MEMBER WITHDETAILS": {Lookup: ratelimit.Lookup{Call: ratelimit.Call{Quantity: 1, Member: []byte("MEMBER")}}, withDetails: true},
		"api acme MEMBER _":                  {Lookup: ratelimit.Lookup{Call: ratelimit.Call{Quantity: 1, Member: []byte{}}}},
		"api acme 1 -2 0":                    {Lookup: ratelimit.Lookup{Call: ratelimit.Call{Quantity: 1, Quantities: []int64{1, -2, 0}}}},
		"api acme -1 -2 FORCE":               {Lookup: ratelimit.Lookup{Call: ratelimit.Call{Quantity: -2, Quantities: []int64{-1, -2}, Mode: ratelimit.Force}}},
		"api acme 0 0 MEMBER 1":              {Lookup: ratelimit.Lookup{Call: ratelimit.Call{Quantities: []int64{0, 0}, Member: []byte("1")}}},
		"api _":                              {Lookup: ratelimit.Lookup{Call: ratelimit.Call{Quantity: 1}}},
		"rls.a acme LIMIT 5 60":              {Lookup: ratelimit.Lookup{Call: ratelimit.Call{Quantity: 1}}, own: ownLimit{[]byte("5"), []byte("60")}},
		"rls.a acme 0 MS limit LIMIT _":      {Lookup: ratelimit.Lookup{Call: ratelimit.Call{}}, own: ownLimit{[]byte("LIMIT"), []byte{}}, millis: true},
		"_ acme#1":                           {Lookup: ratelimit.Lookup{Call: ratelimit.Call{Quantity: 1}}},
	} {
		args := useWords(line)
		want.Policy, want.Key = args[0], args[1]
		var got useCall
		require.Empty(t, got.parse(args, new(quantities)), line)
		require.Equal(t, want, got, line)
	}
}

func TestParseUseRefuses(t *testing.T) {
	near := func(word string) resp.Error { return resp.SyntaxNear([]byte(word)) }
	for line, want := range map[string]resp.Error{
		"api acme 9223372036854775808":  resp.ErrNotInteger,
		"api acme -9223372036854775809": resp.ErrNotInteger,
		"api acme 1e3":                  resp.ErrNotInteger,
		"api acme +1":                   resp.ErrNotInteger,
		"api acme 01":                   resp.ErrNotInteger,
		"api acme _":                    near(""),
		"api acme x":                    near("x"),
		"api acme 1 x":                  near("x"),
		"api acme 1 1e3":                resp.ErrNotInteger,
		"api acme 1 1 PARTIAL":          near("PARTIAL"),
		"api acme PEEK 1 1":             near("1"),
		"api acme" + strings.Repeat(" 1", policy.MaxClauses) + " 17": near("17"),
		"api acme PEEK 1":                  near("1"),
		"api acme PEEK FORCE":              near("FORCE"),
		"api acme PEEK peek":               near("peek"),
		"api acme PARTIAL WAIT 1":          near("WAIT"),
		"api acme WAIT 1 BLOCK 1":          near("BLOCK"),
		"api acme WAIT":                    near("WAIT"),
		"api acme BLOCK":                   near("BLOCK"),
		"api acme MEMBER":                  near("MEMBER"),
		"api acme MEMBER a MEMBER b":       near("MEMBER"),
		"api acme MEMBER _ MEMBER b":       near("MEMBER"),
		"api acme MS MS":                   near("MS"),
		"api acme WITHDETAILS WITHDETAILS": near("WITHDETAILS"),
		"rls.a acme LIMIT":                 near("LIMIT"),
		"rls.a acme LIMIT 5":               near("LIMIT"),
		"rls.a acme LIMIT 5 60 LIMIT 5 60": near("LIMIT"),
		"rls.a acme LIMIT 5 _ LIMIT 5 60":  near("LIMIT"),
		"rls.a acme LIMIT 5 60 FIXED":      near("FIXED"),
		"rls.a acme LIMIT 5 60 9":          near("9"),
		"api acme WAIT x":                  resp.ErrNotInteger,
		"api acme WAIT 1.5":                resp.ErrNotInteger,
		"api acme WAIT -1":                 resp.ErrTimeoutNegative,
		"api acme BLOCK -1":                resp.ErrTimeoutNegative,
		"api acme RESERVE a":               near("RESERVE"),
		"api acme RESERVE a 5 RESERVE a 5": near("RESERVE"),
		"api acme RESERVE a 5 ID b":        near("ID"),
		"api acme ID b RESERVE a 5":        near("RESERVE"),
		"api acme RESERVE a 5 BLOCK 1":     near("BLOCK"),
		"api acme BLOCK 1 RESERVE a 5":     near("RESERVE"),
		"api acme RESERVE a 5 PEEK":        near("PEEK"),
		"api acme PEEK RESERVE a 5":        near("RESERVE"),
		"api acme RESERVE _ 5":             resp.ErrReserveID,
		"api acme RESERVE a x":             resp.ErrNotInteger,
		"api acme RESERVE a 0":             resp.ErrNotPositive,
		"api acme RESERVE a 86401":         resp.ErrNotPositive,
		"api acme RESERVE a 999 MS":        resp.ErrNotPositive,
		"api acme 0 RESERVE a 5":           resp.ErrNotPositive,
		"api acme -1 RESERVE a 5":          resp.ErrNotPositive,
		"api acme 5 0 RESERVE a 5":         resp.ErrNotPositive,
		"api acme 0 RESERVE a 5 NOSUCH":    near("NOSUCH"),
	} {
		var u useCall
		require.Equal(t, want, resp.Bare(u.parse(useWords(line), new(quantities))), line)
	}
}

// TestParseUseReserve: the ttl is in seconds, or with MS anywhere in milliseconds.
func TestParseUseReserve(t *testing.T) {
	for line, want := range map[string]time.Duration{
		"api acme RESERVE a 1":                     time.Second,
		"api acme 5 3 FORCE RESERVE RESERVE 86400": reservation.MaxTTL,
		"api acme RESERVE a 1000 MS":               time.Second,
		"api acme MS WAIT 5 RESERVE a 1500":        1500 * time.Millisecond,
	} {
		var u useCall
		require.Empty(t, u.parse(useWords(line), new(quantities)), line)
		require.Equal(t, want, u.Reserve.TTL, line)
	}
}

// FuzzParseUse: no arguments cause a panic, and only WAIT and BLOCK have a time.
func FuzzParseUse(f *testing.F) {
	for _, line := range []string{
		"api acme", "api acme 7 PARTIAL", "api acme WAIT 5 MS", "api acme BLOCK 0.5 MEMBER m WITHDETAILS", "api acme#2", "a b -1 FORCE", "a b 1e3",
		"api acme 400 RESERVE r 30 MEMBER m", "api acme 1 2 RESERVE r 1000 MS",
		"rls.a acme LIMIT 5 60", "rls.a acme 3 MS LIMIT 0 9223372036854775807 ID i",
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		words := bytes.Split(line, []byte{' '})
		if len(words) < 2 {
			return
		}
		var u useCall
		if u.parse(words, new(quantities)) != "" {
			return
		}
		if u.Mode != ratelimit.Wait && u.Mode != ratelimit.Block {
			require.Zero(t, u.MaxWait)
		}
		require.GreaterOrEqual(t, u.MaxWait, time.Duration(0))
		if u.Reserve.TTL != 0 {
			require.Positive(t, u.Least())
			require.NotEmpty(t, u.id.Token)
			require.GreaterOrEqual(t, u.Reserve.TTL, reservation.MinTTL)
			require.LessOrEqual(t, u.Reserve.TTL, reservation.MaxTTL)
		}
		var kept ownLimits
		if err := u.setOwn(&kept); err != "" || u.own.window == nil {
			require.Nil(t, u.Own)
		} else {
			require.Len(t, u.Own.Clauses, 1)
		}
	})
}

// TestParseUseOfSeveral: which policies a call names, with their keys and quantities, and how they are
// joined. What derives the keys of a call, for permissions and others, finds the same ones.
func TestParseUseOfSeveral(t *testing.T) {
	for line, want := range map[string]string{
		"a k AND b j":                      "all [a k 1] [b j 1]",
		"a k any b j":                      "any [a k 1] [b j 1]",
		"a AND AND b 5 5":                  "all [a AND 1] [b 5 5]",
		"AND ANY ANY ANY AND ANY AND AND":  "any [AND ANY 1] [ANY AND 1] [AND AND 1]",
		"a k -9223372036854775808 AND b j": "all [a k -9223372036854775808] [b j 1]",
		"a k 1 -2 3 AND _ _ 0 PEEK":        "all [a k 3 1 -2 3] [  0]",
		"a k AND b j MEMBER AND":           "all [a k 1] [b j 1]",
		"a k 9223372036854775807 ANY a K 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1": "any [a k 9223372036854775807] [a K 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1]",
	} {
		args := append([][]byte{[]byte("RL.USE")}, useWords(line)...)
		require.True(t, namesSeveral(args), line)
		var u severalCall
		require.Empty(t, u.parse(args), line)
		got := "all"
		if u.any {
			got = "any"
		}
		at := policyKeys.Last
		for i := range u.parts {
			p := &u.parts[i]
			got += " " + strings.TrimSuffix(fmt.Sprintf("[%s %s %d %s", p.Policy, p.Key, p.Quantity, strings.Trim(fmt.Sprint(p.Quantities), "[]")), " ") + "]"
			require.Equal(t, string(p.Policy)+":"+string(p.Key), string(policyKeys.Append(nil, args, at)))
			at = policyKeys.After(args, at)
		}
		require.Zero(t, at, line)
		require.Equal(t, want, got, line)
	}
	for _, line := range []string{"a k", "a AND", "a k AND", "a k AND b", "a k 1 2 ANY b", "a k PEEK AND b j", "a k x AND b j", "a k 1 AN b j", "a k ANDY b j"} {
		require.False(t, namesSeveral(append([][]byte{[]byte("RL.USE")}, useWords(line)...)), line)
	}
}

func TestParseUseOfSeveralRefuses(t *testing.T) {
	near := func(word, why string) resp.Error { return resp.SyntaxNear([]byte(word)) + resp.Error(why) }
	const payer = ": with ANY its settlement would not name the policy that pays"
	const mixed, twice, negative = ": AND and ANY do not mix", ": the same policy and key are named twice", ": with ANY no quantity is negative"
	for line, want := range map[string]resp.Error{
		"a k AND b k ANY c k":                    near("ANY", mixed),
		"a k ANY b k AND c k x":                  near("AND", mixed),
		"a k AND a k":                            near("k", twice),
		"a k ANY b k RESERVE r 30":               near("RESERVE", payer),
		"a k ANY b k 0 RESERVE r 30":             near("RESERVE", payer),
		"a k AND b k AND a k PEEK":               near("k", twice),
		"a k 1e3 AND b k":                        resp.ErrNotInteger,
		"a k AND b k 9223372036854775808":        resp.ErrNotInteger,
		"a k AND b k 1 AND":                      near("AND", ""),
		"a k AND b k AND c":                      near("AND", ""),
		"a k AND b k PEEK FORCE":                 near("FORCE", ""),
		"a k AND b k PEEK AND c k":               near("AND", ""),
		"a k AND b k MEMBER":                     near("MEMBER", ""),
		"a k AND b k MS MS":                      near("MS", ""),
		"a k AND b k WAIT -1":                    resp.ErrTimeoutNegative,
		"rls.a k AND rls.b k LIMIT 5 60":         near("LIMIT", ": it is for a call of one policy"),
		"rls.a k ANY rls.b k LIMIT 5 60":         near("LIMIT", ": it is for a call of one policy"),
		"a k ANY b k WAIT x":                     resp.ErrNotInteger,
		"a k ANY b k BLOCK 1":                    near("BLOCK", ": with ANY no call waits"),
		"a k ANY b k partial":                    near("PARTIAL", ": with ANY one policy is charged for the whole quantity"),
		"a k 2 AND b k PARTIAL":                  near("PARTIAL", ": all policies need the same quantity, and only one"),
		"a k 1 1 AND b k 1 1 PARTIAL":            near("PARTIAL", ": all policies need the same quantity, and only one"),
		"a k -1 ANY b k":                         near("-1", negative),
		"a k ANY b k 3 -2 5":                     near("-2", negative),
		"a k ANY b k -9223372036854775808":       near("-9223372036854775808", negative),
		"a 1" + strings.Repeat(" ANY a x", 1):    "",
		"a k AND b k" + strings.Repeat(" 1", 17): near("1", ""),
	} {
		var u severalCall
		require.Equal(t, want, resp.Bare(u.parse(append([][]byte{[]byte("RL.USE")}, useWords(line)...))), line)
	}
	many := [][]byte{[]byte("RL.USE"), []byte("a"), []byte("k")}
	for i := range 20_000 {
		many = append(many, []byte("AND"), []byte("a"), fmt.Append(nil, i))
	}
	require.Equal(t, errTooManyPolicies, new(severalCall).parse(many))
}
