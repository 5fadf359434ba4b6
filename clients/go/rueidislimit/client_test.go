package rueidislimit_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clients/go/limit"
	"github.com/cellserver/cellserver/clients/go/rueidislimit"
)

// answer answers the commands on a connection: the first word, or the first word and the key, names the reply.
func answer(conn net.Conn, replies map[string]string) {
	in := bufio.NewReader(conn)
	for {
		words, err := command(in)
		if err != nil {
			return
		}
		reply, ok := replies[strings.Join(words[:min(3, len(words))], " ")]
		if !ok {
			reply = replies[words[0]]
		}
		if reply == "" {
			reply = "-ERR unknown command\r\n"
		}
		if _, err := io.WriteString(conn, reply); err != nil {
			return
		}
	}
}

// command reads a command.
func command(in *bufio.Reader) (words []string, err error) {
	number := func() (int, error) {
		line, err := in.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := number()
	for range n {
		size, err := number()
		if err != nil {
			return nil, err
		}
		word := make([]byte, size+len("\r\n"))
		if _, err := io.ReadFull(in, word); err != nil {
			return nil, err
		}
		words = append(words, string(word[:size]))
	}
	return words, err
}

// connect returns a client of rueidis for a server with the given replies.
func connect(t *testing.T, replies map[string]string) rueidis.Client {
	t.Helper()
	replies["HELLO"] = "%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n"
	replies["CLIENT"] = "+OK\r\n"
	c, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{"limits:6379"}, ForceSingleClient: true, DisableCache: true,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			near, far := net.Pipe()
			go answer(far, replies)
			return near, nil
		},
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestLimiter(t *testing.T) {
	const none = "*5\r\n:0\r\n:2\r\n:2\r\n:-1\r\n:0\r\n"
	c := connect(t, map[string]string{
		"RL.USE":            "*2\r\n" + none + "*1\r\n" + none,
		"RL.USE api denied": "*5\r\n:1\r\n:2\r\n:0\r\n:500\r\n:1000\r\n",
		"RL.USE api away":   "-LOADING wait\r\n",
		"RL.USE api hash":   "-WRONGTYPE no\r\n",
		"RL.USE api nil":    "_\r\n",
		"RL.POLICY GET api": "%2\r\n$6\r\nlimits\r\n*1\r\n$9\r\nTB 2 1 60\r\n$2\r\nms\r\n:0\r\n",
	})
	l, err := limit.New(t.Context(), limit.Options{
		Client: rueidislimit.New(c), Policy: "api", OnUnavailable: limit.Local, Instances: func() int { return 1 }, Deadline: limit.MaxDeadline,
	})
	require.NoError(t, err, "the limits of the policy are a map")
	defer func() { require.NoError(t, l.Close()) }()
	r, err := l.Allow(t.Context(), "ann")
	require.NoError(t, err)
	require.Equal(t, limit.Server, r.Source)
	r, err = l.Allow(t.Context(), "denied")
	require.NoError(t, err)
	require.Equal(t, 500*time.Millisecond, r.RetryAfter)
	r, err = l.Allow(t.Context(), "away")
	require.NoError(t, err)
	require.Equal(t, limit.InProcess, r.Source)
	_, err = l.Allow(t.Context(), "hash")
	require.ErrorIs(t, err, limit.ReplyError("WRONGTYPE no"))
	_, err = l.Allow(t.Context(), "nil")
	require.Error(t, err, "no reply of a limiter")
}
