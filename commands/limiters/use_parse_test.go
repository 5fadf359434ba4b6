package limiters

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
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
		"api acme WAIT x":                  resp.ErrNotInteger,
		"api acme WAIT 1.5":                resp.ErrNotInteger,
		"api acme WAIT -1":                 resp.ErrTimeoutNegative,
		"api acme BLOCK -1":                resp.ErrTimeoutNegative,
	} {
		var u useCall
		require.Equal(t, want, resp.Bare(u.parse(useWords(line), new(quantities))), line)
	}
}

// FuzzParseUse: no arguments cause a panic, and only WAIT and BLOCK have a time.
func FuzzParseUse(f *testing.F) {
	for _, line := range []string{
		"api acme", "api acme 7 PARTIAL", "api acme WAIT 5 MS", "api acme BLOCK 0.5 MEMBER m WITHDETAILS", "api acme#2", "a b -1 FORCE", "a b 1e3",
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
	})
}
