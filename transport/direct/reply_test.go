package direct

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReplySize(t *testing.T) {
	for _, reply := range []string{
		"+OK\r\n", "-ERR no\r\n", ":-12\r\n", "$3\r\na\nb\r\n", "$0\r\n\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n",
		"*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n", "*2\r\n*1\r\n$1\r\nx\r\n+b\r\n",
	} {
		require.Equal(t, len(reply), replySize([]byte(reply+"+more\r\n")), "%q", reply)
		for i := range reply {
			require.Zero(t, replySize([]byte(reply[:i])), "%q", reply[:i])
		}
	}
	for _, wrong := range []string{"\n", "x\r\n", "$x\r\n", "*\r\n", "$-2\r\n", "*1\r\nx\r\n", "$99999999999999999999\r\n"} {
		require.Equal(t, -1, replySize([]byte(wrong)), "%q", wrong)
	}
	require.Equal(t, -1, replySize(bytes.Repeat([]byte("*1\r\n"), maxDepth+1)))
}

// FuzzReplySize checks that the size of a reply depends on nothing behind the reply, and that it is never beyond the bytes.
func FuzzReplySize(f *testing.F) {
	for _, s := range []string{"+OK\r\n", "*2\r\n$3\r\nabc\r\n:1\r\n", "$9223372036854775807\r\n", "*1000000000\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n := replySize(b)
		require.LessOrEqual(t, n, len(b))
		if n > 0 {
			require.Equal(t, n, replySize(b[:n:n]))
			require.Zero(t, replySize(b[:n-1]))
		}
	})
}
