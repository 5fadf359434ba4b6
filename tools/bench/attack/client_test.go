package attack

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// play returns a client of a server that sends text, whatever it receives, and closes the
// connection.
func play(t *testing.T, text string) *client {
	near, far := net.Pipe()
	go func() {
		io.WriteString(far, text)
		far.Close()
	}()
	c := newClient(t.Context(), near)
	t.Cleanup(c.close)
	return c
}

func TestClientReadsRepliesWithoutKeepingThem(t *testing.T) {
	long := strings.Repeat("x", 2*bufferSize)
	for name, tt := range map[string]struct {
		text string
		want reply
	}{
		"line":            {"+OK\r\n", reply{bytes: 5, text: "OK"}},
		"integer":         {":12\r\n", reply{bytes: 5, text: "12"}},
		"error":           {"-OOM no room\r\n", reply{bytes: 14, err: "OOM no room", errors: 1}},
		"string":          {"$524288\r\n" + long + "\r\n", reply{bytes: 524288 + 11}},
		"no string":       {"$-1\r\n", reply{bytes: 5}},
		"no array":        {"*-1\r\n", reply{bytes: 5}},
		"array":           {"*3\r\n$1\r\na\r\n*1\r\n:1\r\n*0\r\n", reply{bytes: 23, text: "1"}},
		"errors in array": {"*2\r\n-ERR one\r\n-ERR two\r\n", reply{bytes: 24, err: "ERR one", errors: 2}},
		"map":             {"%1\r\n+a\r\n#t\r\n", reply{bytes: 12, text: "t"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := play(t, tt.text+"+next\r\n")
			r, err := c.receive()
			require.NoError(t, err)
			require.Equal(t, tt.want, r)
			r, err = c.receive()
			require.NoError(t, err)
			require.Equal(t, "next", r.text)
			_, err = c.receive()
			require.ErrorIs(t, err, io.EOF)
		})
	}
	for _, text := range []string{"what\r\n", "\r\n", "$x\r\n", "*1\r\n$\r\n"} {
		_, err := play(t, text).receive()
		require.ErrorIs(t, err, errNotRESP, text)
	}
	_, err := play(t, "$10\r\ncut").receive()
	require.ErrorIs(t, err, io.EOF)
}

func TestClientEndsWithItsContext(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	ctx, cancel := context.WithCancel(t.Context())
	c := newClient(ctx, near)
	defer c.close()
	cancel()
	_, err := c.receive()
	require.Error(t, err)
}

// TestJudgeTellsApartWhatBecomesOfARequest: each outcome of a request increments its own counter.
func TestJudgeTellsApartWhatBecomesOfARequest(t *testing.T) {
	var s scene
	over, cancel := context.WithCancel(t.Context())
	cancel()
	s.judge(t.Context(), &reply{}, nil)
	s.judge(t.Context(), &reply{err: "OOM"}, nil)
	s.judge(t.Context(), &reply{}, io.EOF)
	s.judge(over, &reply{}, io.EOF)
	s.count(&reply{bytes: 7, err: "OOM no room", errors: 3})
	var r Result
	r.take(&s.tally)
	require.Equal(t, Result{Served: 1, Refused: 1, Closed: 1, Late: 1, Replies: 1, Bytes: 7, Errors: map[string]int64{"OOM": 3}}, r)
}
