package use

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/resp"
)

func TestCommandsOfSeveralPolicies(t *testing.T) {
	parts := []Part{{[]byte("a"), []byte("k"), 1}, {[]byte("b"), []byte(""), 0}, {[]byte("c"), []byte("AND"), 1<<63 - 1}}
	require.Equal(t, "RL.USE a k 1 MS WITHDETAILS", words(t, AppendAll(nil, parts[:1], "")))
	require.Equal(t, "RL.USE a k 1 AND b  0 AND c AND 9223372036854775807 PEEK MS WITHDETAILS", words(t, AppendAll(nil, parts, "PEEK")))
	buf := make([]byte, 0, 1000)
	require.Zero(t, testing.AllocsPerRun(100, func() { buf = AppendAll(buf[:0], parts, "") }))
}

// These are decisions in a reply: of a limit of 5 and one of 7, and of a limit of 5 that denies.
const (
	five    = "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:60000\r\n"
	seven   = "*5\r\n:0\r\n:7\r\n:3\r\n:-1\r\n:0\r\n"
	refuses = "*5\r\n:1\r\n:5\r\n:0\r\n:9\r\n:60000\r\n"
)

func TestOutcomes(t *testing.T) {
	of5, of7, over := Decision{0, 5, 4, -1, 60000}, Decision{0, 7, 3, -1, 0}, Decision{1, 5, 0, 9, 60000}
	for _, test := range []struct {
		reply  string
		n      int
		denied bool
		want   []Outcome
	}{
		{"*2\r\n" + five + "*1\r\n" + five, 1, false, []Outcome{{Decision: of5}}},
		{"*2\r\n" + seven + "*2\r\n" + five + seven, 1, false, []Outcome{{Decision: of7}}}, // the fewest remaining units
		{"*2\r\n" + refuses + "*2\r\n" + seven + refuses, 1, true, []Outcome{{Decision: over}}},
		{"*2\r\n" + five + "*1\r\n" + refuses, 1, false, []Outcome{{Decision: over}}}, // an exemption
		{"*2\r\n" + seven + "*2\r\n*1\r\n" + five + "*2\r\n" + five + seven, 2, false, []Outcome{{Decision: of5}, {Decision: of7}}},
		{"*2\r\n" + refuses + "*3\r\n*-1\r\n*2\r\n" + refuses + seven + "*-1\r\n", 3, true, []Outcome{{Untried: true}, {Decision: over}, {Untried: true}}}, // a block
		{"*2\r\n" + five + "*2\r\n*1\r\n" + refuses + "*1\r\n" + five, 2, false, []Outcome{{Decision: over}, {Decision: of5}}},
	} {
		var p Parts
		for range 2 {
			rest, err := p.Read([]byte(test.reply+"+next\r\n"), test.n)
			require.NoError(t, err)
			require.Equal(t, "+next\r\n", string(rest))
			require.Equal(t, test.denied, p.Denied, test.reply)
			require.Equal(t, test.want, p.Outcomes, test.reply)
		}
	}
	var p Parts
	rest, err := p.Read([]byte("-NOPOLICY no\r\n"+five), 2)
	require.Equal(t, resp.Error("NOPOLICY no"), err)
	require.Equal(t, five, string(rest))
}

func TestOtherRepliesOfSeveralPolicies(t *testing.T) {
	one := "*1\r\n" + five
	for _, reply := range []string{
		"", "-ERR", ":2\r\n", five, "*2\r\n" + five, "*3\r\n" + five + "*2\r\n" + one + one, "*2\r\n" + one + "*2\r\n" + one + one,
		"*2\r\n" + five + one, "*2\r\n" + five + "*1\r\n" + one, "*2\r\n" + five + "*3\r\n" + one + one + one, "*2\r\n" + five + "*-1\r\n",
		"*2\r\n" + five + "*2\r\n" + one, "*2\r\n" + five + "*2\r\n" + one + "*0\r\n", "*2\r\n" + five + "*2\r\n" + one + "*-2\r\n",
		"*2\r\n" + five + "*2\r\n" + one + "*65\r\n" + strings.Repeat(five, 65), "*2\r\n" + five + "*2\r\n" + one + "*1\r\n:1\r\n",
	} {
		var p Parts
		_, err := p.Read([]byte(reply), 2)
		require.ErrorIs(t, err, ErrReply, "%q", reply)
	}
}

func FuzzReadSeveral(f *testing.F) {
	f.Add([]byte("*2\r\n"+refuses+"*2\r\n*-1\r\n*2\r\n"+refuses+seven), 2)
	f.Add([]byte("*2\r\n"+five+"*1\r\n"+five), 1)
	f.Fuzz(func(t *testing.T, replies []byte, n int) {
		var p Parts
		n = max(n%maxElements, 1)
		rest, err := p.Read(replies, n)
		if err == nil {
			require.Len(t, p.Outcomes, n)
		}
		require.Less(t, len(rest), max(len(replies), 1))
	})
}
