//go:build real

package lua_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRecordAnswersOfRedis records the replies of a Redis at REDIS_ADDR=host:port for
// TestRedisAnswersTheSame.
func TestRecordAnswersOfRedis(t *testing.T) {
	addr := os.Getenv("REDIS_ADDR")
	if addr == "" {
		t.Skip("REDIS_ADDR names no Redis to record from")
	}
	record(t, addr)
}

func record(t *testing.T, addr string) {
	t.Helper()
	var b strings.Builder
	for _, source := range expressions(t) {
		fmt.Fprintf(&b, "%q\t%q\n", source, ask(t, addr, source))
	}
	require.NoError(t, os.WriteFile(recording, []byte(b.String()), 0o600))
}

func ask(t *testing.T, addr, source string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "*1\r\n$8\r\nFLUSHALL\r\n*3\r\n$4\r\nEVAL\r\n$%d\r\n%s\r\n$1\r\n0\r\n", len(source), source)
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	_, err = in.ReadString('\n')
	require.NoError(t, err)
	return readReply(t, in)
}

func readReply(t *testing.T, in *bufio.Reader) string {
	t.Helper()
	head, err := in.ReadString('\n')
	require.NoError(t, err)
	var n int
	switch head[0] {
	case '$':
		_, err = fmt.Sscanf(head[1:], "%d", &n)
		require.NoError(t, err)
		if n < 0 {
			return head
		}
		body := make([]byte, n+2)
		for read := 0; read < len(body); {
			got, err := in.Read(body[read:])
			require.NoError(t, err)
			read += got
		}
		return head + string(body)
	case '*':
		_, err = fmt.Sscanf(head[1:], "%d", &n)
		require.NoError(t, err)
		for range n {
			head += readReply(t, in)
		}
	}
	return head
}
