package limiters

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
	for line, want := range map[string]useArgs{
		"api acme":                           {quantity: 1},
		"api acme 0":                         {quantity: 0},
		"api acme -9223372036854775808":      {quantity: math.MinInt64},
		"api acme 9223372036854775807 force": {quantity: math.MaxInt64, mode: useForce},
		"api acme PEEK":                      {quantity: 1, mode: usePeek},
		"api acme 7 partial MS":              {quantity: 7, mode: usePartial, millis: true},
		"api acme WAIT 5":                    {quantity: 1, mode: useWait, wait: 5 * time.Second},
		"api acme MS WAIT 5":                 {quantity: 1, mode: useWait, wait: 5 * time.Millisecond, millis: true},
		"api acme WAIT 0":                    {quantity: 1, mode: useWait},
		"api acme WAIT 9223372036854775807":  {quantity: 1, mode: useWait, wait: longest},
		"api acme BLOCK 0":                   {quantity: 1, mode: useBlock},
		"api acme BLOCK 1.5 MEMBER m":        {quantity: 1, mode: useBlock, wait: 1500 * time.Millisecond, member: []byte("m")},
		"api acme MEMBER WITHDETAILS":        {quantity: 1, member: []byte("WITHDETAILS")},
		"api acme MEMBER MEMBER WITHDETAILS": {quantity: 1, member: []byte("MEMBER"), withDetails: true},
		"api acme MEMBER _":                  {quantity: 1, member: []byte{}},
		"api _":                              {quantity: 1},
		"_ acme#1":                           {quantity: 1},
	} {
		args := useWords(line)
		want.name, want.key, want.options = args[0], args[1], len(args) > 2
		var got useArgs
		require.Empty(t, got.parse(args), line)
		require.Equal(t, want, got, line)
	}
}

func TestParseUseRefuses(t *testing.T) {
	near := func(word string) resp.Error { return resp.SyntaxNear([]byte(word)) }
	for line, want := range map[string]resp.Error{
		"api acme 9223372036854775808":     resp.ErrNotInteger,
		"api acme -9223372036854775809":    resp.ErrNotInteger,
		"api acme 1e3":                     resp.ErrNotInteger,
		"api acme +1":                      resp.ErrNotInteger,
		"api acme 01":                      resp.ErrNotInteger,
		"api acme _":                       near(""),
		"api acme x":                       near("x"),
		"api acme 1 1":                     near("1"),
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
		var got useArgs
		require.Equal(t, want, resp.Bare(got.parse(useWords(line))), line)
	}
}

// FuzzParseUse: no arguments cause a panic, and nothing of a call affects the next one.
func FuzzParseUse(f *testing.F) {
	for _, line := range []string{
		"api acme", "api acme 7 PARTIAL", "api acme WAIT 5 MS", "api acme BLOCK 0.5 MEMBER m WITHDETAILS", "api acme#2", "a b -1 FORCE", "a b 1e3",
	} {
		f.Add([]byte(line))
	}
	var kept useArgs
	f.Fuzz(func(t *testing.T, line []byte) {
		words := bytes.Split(line, []byte{' '})
		if len(words) < 2 {
			return
		}
		var fresh useArgs
		require.Equal(t, fresh.parse(words), kept.parse(words))
		require.Equal(t, fresh, kept)
		if fresh.mode != useWait && fresh.mode != useBlock {
			require.Zero(t, fresh.wait)
		}
		require.GreaterOrEqual(t, fresh.wait, time.Duration(0))
	})
}
