package loadgen_test

import (
	"strings"
	"testing"

	"github.com/cellserver/cellserver/tools/bench/loadgen"
	"github.com/stretchr/testify/require"
)

func TestScanReply(t *testing.T) {
	none := []int64{}
	for text, want := range map[string]loadgen.Scanned{
		"+PONG\r\n":         {Kind: '+', Ints: none, Text: "PONG"},
		"-ERR no\r\n":       {Kind: '-', Ints: none, Text: "ERR no"},
		":-42\r\n":          {Kind: ':', Ints: []int64{-42}},
		"$5\r\na\r\nbc\r\n": {Kind: '$', Ints: none, Text: "a\r\nbc"},
		"$-1\r\n":           {Kind: '$', Ints: none},
		"$0\r\n\r\n":        {Kind: '$', Ints: none},
		"*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n":          {Kind: '*', Length: 5, Ints: []int64{0, 16, 15, -1, 2}},
		"*7\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n": {Kind: '*', Length: 7, Ints: []int64{1, 2, 3, 4, 5}},
		"*3\r\n:1\r\n$1\r\nx\r\n:3\r\n":                    {Kind: '*', Length: 3, Ints: []int64{1}},
		"*2\r\n*1\r\n:9\r\n*-1\r\n":                        {Kind: '*', Length: 2, Ints: none},
		"*0\r\n":                                           {Kind: '*', Ints: none},
		"*-1\r\n":                                          {Kind: '*', Length: -1, Ints: none},
		"_\r\n":                                            {Kind: '_', Ints: none}, "#t\r\n": {Kind: '#', Ints: none, Text: "t"},
		",1.5\r\n": {Kind: ',', Ints: none, Text: "1.5"}, "(123456789012345678901234567890\r\n": {Kind: '(', Ints: none, Text: "123456789012345678901234567890"},
		"!5\r\nERR x\r\n":                        {Kind: '!', Ints: none, Text: "ERR x"},
		"=7\r\ntxt:abc\r\n":                      {Kind: '=', Ints: none, Text: "txt:abc"},
		"%1\r\n+a\r\n:1\r\n":                     {Kind: '%', Length: 1, Ints: none},
		"~2\r\n:1\r\n:2\r\n":                     {Kind: '~', Length: 2, Ints: none},
		">2\r\n+invalidate\r\n*1\r\n$1\r\na\r\n": {Kind: '>', Length: 2, Ints: none},
		"|1\r\n+ttl\r\n:9\r\n$2\r\nok\r\n":       {Kind: '$', Length: 1, Ints: none, Text: "ok"},
	} {
		got, n, err := loadgen.Scan([]byte(text + "rest"))
		require.NoError(t, err, "%q", text)
		require.Equal(t, len(text), n, "%q", text)
		require.Equal(t, want, got, "%q", text)
		for i := range len(text) {
			_, n, err := loadgen.Scan([]byte(text[:i]))
			require.NoError(t, err, "%q", text[:i])
			require.Zero(t, n, "%q is not all of it", text[:i])
		}
	}
}

func TestScanReplyRefuses(t *testing.T) {
	for _, text := range []string{
		"hello\r\n", ":x\r\n", ":\r\n", "*x\r\n", "$5x\r\n", "$99999999999\r\n", "*99999999999\r\n", ":1\n\n", ":123456789012345678901\r\n",
		strings.Repeat("*1\r\n", 40) + ":1\r\n", "*2\r\n:1\r\n?\r\n",
	} {
		_, n, err := loadgen.Scan([]byte(text))
		require.Error(t, err, "%q", text)
		require.Zero(t, n)
	}
}

func FuzzScanReply(f *testing.F) {
	for _, s := range []string{"*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n", "+OK\r\n", "$3\r\nabc\r\n", "|1\r\n+a\r\n+b\r\n%1\r\n+c\r\n_\r\n", "*-1\r\n", ">1\r\n:1\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, n, err := loadgen.Scan(b)
		if err != nil {
			require.Zero(t, n)
			return
		}
		require.LessOrEqual(t, n, len(b))
		if n == 0 {
			return
		}
		again, m, err := loadgen.Scan(b[:n])
		require.NoError(t, err)
		require.Equal(t, n, m)
		require.Equal(t, got, again)
		_, m, _ = loadgen.Scan(b[:n-1])
		require.Zero(t, m, "no reply is the beginning of another")
	})
}
