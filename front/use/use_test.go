package use

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/resp"
)

func TestCommands(t *testing.T) {
	for _, test := range []struct {
		call Call
		want string
	}{
		{Call{Policy: []byte("api"), Key: []byte("k"), Quantity: 1}, "RL.USE api k 1 MS WITHDETAILS"},
		{Call{Policy: []byte("api"), Key: []byte(""), Quantity: -3, Mode: "FORCE", Member: "m"}, "RL.USE api  -3 FORCE MEMBER m MS WITHDETAILS"},
		{Call{Policy: []byte("rls.a.b"), Key: []byte("k"), Own: Window{Most: 7, Seconds: 60}}, "RL.USE rls.a.b k 0 LIMIT 7 60000 MS WITHDETAILS"},
		{Call{Quantity: -1 << 63, Mode: "PARTIAL", Member: "m", Own: Window{1<<63 - 1, 31536000}}, "RL.USE   -9223372036854775808 PARTIAL MEMBER m LIMIT 9223372036854775807 31536000000 MS WITHDETAILS"},
	} {
		require.Equal(t, test.want, words(t, test.call.AppendTo(nil)))
	}
	c := Call{Policy: []byte("rls.a.b"), Key: []byte("k"), Quantity: 1, Own: Window{Most: 7, Seconds: 60}}
	buf := make([]byte, 0, 1000)
	require.Zero(t, testing.AllocsPerRun(100, func() { buf = c.AppendTo(buf[:0]) }))
}

func words(t *testing.T, command []byte) (line string) {
	t.Helper()
	r := reader{rest: command}
	n := int(command[1] - '0')
	if command[2] != '\r' {
		n = 10*n + int(command[2]-'0')
		r.rest = command[5:]
	} else {
		r.rest = command[4:]
	}
	for i := range n {
		size := r.integer('$')
		require.False(t, r.bad)
		if i > 0 {
			line += " "
		}
		line += string(r.rest[:size])
		r.rest = r.rest[size+2:]
	}
	require.Empty(t, r.rest)
	return line
}

func TestReplies(t *testing.T) {
	var a Answer
	rest, err := a.Read([]byte("*2\r\n*5\r\n:1\r\n:5\r\n:0\r\n:-1\r\n:60000\r\n*2\r\n*5\r\n:0\r\n:7\r\n:3\r\n:-1\r\n:0\r\n*5\r\n:1\r\n:5\r\n:0\r\n:-1\r\n:60000\r\n-ERR no\r\n"))
	require.NoError(t, err)
	binding := Decision{Refused: 1, Limit: 5, RetryMillis: -1, ResetMillis: 60000}
	require.Equal(t, Answer{binding, []Decision{{Limit: 7, Remaining: 3, RetryMillis: -1}, binding}}, a)
	rest, err = a.Read(rest)
	require.Equal(t, resp.Error("ERR no"), err)
	require.Empty(t, rest)
}

func TestOtherReplies(t *testing.T) {
	five := "*5\r\n:1\r\n:5\r\n:0\r\n:-1\r\n:60000\r\n"
	for _, reply := range []string{
		"", "\r\n", "-ERR", ":1\r\n", "+OK\r\n", five, "*1\r\n" + five, "*2\r\n" + five, "*2\r\n" + five + "*0\r\n", "*2\r\n" + five + "*1\r\n:1\r\n",
		"*2\r\n" + five + "*-1\r\n", "*2\r\n" + five + "*17\r\n" + five, "*2\r\n*5\r\n:1\r\n:x\r\n:0\r\n:-1\r\n:60000\r\n*1\r\n" + five,
		"*2\r\n*4\r\n:1\r\n:0\r\n:-1\r\n:60000\r\n*1\r\n" + five,
	} {
		var a Answer
		_, err := a.Read([]byte(reply))
		require.ErrorIs(t, err, ErrReply, "%q", reply)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("*2\r\n*5\r\n:1\r\n:5\r\n:0\r\n:-1\r\n:60000\r\n*1\r\n*5\r\n:1\r\n:5\r\n:0\r\n:-1\r\n:60000\r\n"))
	f.Fuzz(func(t *testing.T, replies []byte) {
		var a Answer
		rest, err := a.Read(replies)
		if err == nil {
			require.NotEmpty(t, a.Clauses)
			require.LessOrEqual(t, len(a.Clauses), maxElements)
		}
		require.Less(t, len(rest), max(len(replies), 1))
	})
}
