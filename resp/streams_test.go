package resp_test

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/resp"
)

// stream is one entry of testdata/streams.txt, which describes its own format.
type stream struct {
	name     string
	password bool
	differs  string
	send     []byte
	replies  []string
	closed   bool
}

// readStreams reads the table of streams.
func readStreams(t *testing.T) []stream {
	t.Helper()
	text, err := os.ReadFile("testdata/streams.txt")
	require.NoError(t, err)
	var all []stream
	var s *stream
	names := map[string]bool{}
	for i, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		at := fmt.Sprintf("streams.txt:%d: %s", i+1, line)
		word, rest, _ := strings.Cut(line, " ")
		if word == "stream" {
			require.Nil(t, s, at)
			require.False(t, names[rest], at)
			names[rest] = true
			s = &stream{name: rest}
			continue
		}
		require.NotNil(t, s, at)
		switch word {
		case "password":
			s.password = true
		case "differs":
			s.differs = rest
		case "send":
			s.send = append(s.send, repeated(t, at, rest)...)
		case "reply":
			s.replies = append(s.replies, repeated(t, at, rest))
		case "more":
			s.replies[len(s.replies)-1] += repeated(t, at, rest)
		case "closed", "open":
			s.closed = word == "closed"
			all = append(all, *s)
			s = nil
		default:
			require.Fail(t, "unknown word", at)
		}
	}
	require.Nil(t, s, "the last stream has no end")
	return all
}

// repeated returns the bytes that `"BYTES" [xN]` stands for.
func repeated(t *testing.T, at, text string) string {
	t.Helper()
	quoted, err := strconv.QuotedPrefix(text)
	require.NoError(t, err, at)
	unit, err := strconv.Unquote(quoted)
	require.NoError(t, err, at)
	times := 1
	if factor := strings.TrimSpace(text[len(quoted):]); factor != "" {
		require.Equal(t, "x", factor[:1], at)
		times, err = strconv.Atoi(factor[1:])
		require.NoError(t, err, at)
	}
	return strings.Repeat(unit, times)
}

// echoServer replies to the few commands of the streams as Redis 7 does, with a Guard and a Writer.
type echoServer struct {
	guard  resp.Guard
	lim    resp.Limits
	locked bool
	out    resp.Writer
	closed bool
}

func newEchoServer(password bool) *echoServer {
	s := &echoServer{lim: resp.DefaultLimits(), locked: password}
	if password {
		s.lim = s.lim.PreAuth()
	}
	return s
}

// serve runs the commands of in and returns the number of consumed bytes.
func (s *echoServer) serve(in []byte) (consumed int) {
	for !s.closed {
		args, n, err := s.guard.Next(in[consumed:], nil, &s.lim)
		consumed += n
		switch {
		case err != "":
			s.out.Error(err)
			s.closed = true
		case len(args) == 0:
			return consumed
		default:
			s.run(args)
		}
	}
	return consumed
}

func (s *echoServer) run(args [][]byte) {
	arity, known := map[string]int{"ping": -1, "echo": 2, "auth": -2, "quit": -1}[strings.ToLower(string(args[0]))]
	name := strings.ToLower(string(args[0]))
	switch {
	case resp.IsCrossProtocol(args[0]):
		s.closed = true
	case !known:
		s.out.Error(unknownCommand(args))
	case arity > 0 && len(args) != arity, len(args) < -arity, name == "ping" && len(args) > 2 && !s.locked:
		s.out.Error(resp.WrongArity(name))
	case name == "quit":
		s.out.OK()
		s.closed = true
	case name == "auth":
		s.lim, s.locked = resp.DefaultLimits(), false
		s.out.OK()
	case s.locked:
		s.out.Error(resp.ErrNoAuth)
	case name == "ping" && len(args) == 1:
		s.out.Status("PONG")
	default:
		s.out.Bulk(args[1])
	}
}

// unknownCommand returns the error of Redis 7. It cuts the name and the arguments at 128 bytes and
// at a NUL, as C strings end there.
func unknownCommand(args [][]byte) resp.Error {
	cut := func(b []byte, n int) []byte {
		b, _, _ = bytes.Cut(b, []byte{0})
		return b[:min(len(b), n)]
	}
	var shown []byte
	for _, arg := range args[1:] {
		if len(shown) >= 128 {
			break
		}
		shown = fmt.Appendf(shown, "'%s' ", cut(arg, 128-len(shown)))
	}
	return resp.Error(fmt.Sprintf("ERR unknown command '%s', with args beginning with: %s", cut(args[0], 128), shown))
}

func TestStreams(t *testing.T) {
	for _, s := range readStreams(t) {
		t.Run(s.name, func(t *testing.T) {
			for _, chunks := range [][][]byte{{s.send}, bytewise(s.send), randomChunks(s.send, 7)} {
				server := newEchoServer(s.password)
				end, start := 0, 0
				for _, chunk := range chunks {
					end += len(chunk)
					start += server.serve(s.send[start:end])
				}
				require.Equal(t, strings.Join(s.replies, ""), string(server.out.Buf))
				require.Equal(t, s.closed, server.closed)
			}
		})
	}
}
