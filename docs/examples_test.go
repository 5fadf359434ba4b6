// Package docs_test checks the pages of this folder against the server. It repeats every call and
// every size that they quote.
package docs_test

import (
	"flag"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/session"
	"github.com/cellserver/cellserver/transport"
)

var update = flag.Bool("update", false, "write the server's replies into the pages")

// midnight is when every block begins: 2026-01-01 00:00 UTC, where windows of
// seconds, minutes, hours and days begin too.
var midnight = limit.Instant(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())

// exampleLine is a line of a ```replies block: an instant, an optional client, a command ("..."
// for the reply of one that waits), its reply, and an optional comment after '#'.
var exampleLine = regexp.MustCompile(`^(\S+)( +)(?:(\w+): )?(.*?)( +)-> (.*?)( +#.*)?$`)

// TestReplies runs every line of every ```replies block of the pages, each block on
// an empty server.
func TestReplies(t *testing.T) {
	for page, least := range map[string]int{"limiters.md": 100, "differences.md": 10, "recipes.md": 5, "migrating.md": 25, "policies.md": 100, "../README.md": 4} {
		t.Run(page, func(t *testing.T) {
			content, err := os.ReadFile(page)
			require.NoError(t, err)
			lines := strings.Split(string(content), "\n")
			var run *exampleRun
			played := 0
			for i, line := range lines {
				switch {
				case run == nil && line == "```replies":
					run = newExampleRun(t)
				case run != nil && line == "```":
					run = nil
				case run != nil && line != "" && !strings.HasPrefix(line, "#"):
					lines[i] = run.play(t, fmt.Sprintf("%s:%d", page, i+1), line)
					played++
				}
			}
			require.GreaterOrEqual(t, played, least, "the page lost its examples")
			if *update {
				require.NoError(t, os.WriteFile(page, []byte(strings.Join(lines, "\n")), 0o644))
			}
		})
	}
}

// exampleRun is a server with a clock of its own, and its clients by name.
type exampleRun struct {
	server  *inproc.Server
	clients map[string]*exampleClient
}

func newExampleRun(t *testing.T) *exampleRun {
	t.Helper()
	s, err := inproc.New(midnight, []net.Listener{})
	require.NoError(t, err)
	t.Cleanup(func() {
		s.Engine().Close()
		s.Keyspace().Close()
	})
	return &exampleRun{server: s, clients: map[string]*exampleClient{}}
}

// play runs a line and returns it with the reply that came.
func (r *exampleRun) play(t *testing.T, where, line string) string {
	t.Helper()
	part := exampleLine.FindStringSubmatch(line)
	require.NotNil(t, part, "%s: not `instant command -> reply`: %s", where, line)
	at, err := time.ParseDuration(part[1])
	require.NoError(t, err, where)
	require.GreaterOrEqual(t, midnight.Add(at), r.server.Clock.Now(), "%s: time goes back", where)
	r.server.Clock.Set(midnight.Add(at))
	got := r.client(t, part[3]).do(t, where, part[4])
	switch {
	case abbreviates(part[6], got):
		got = part[6]
	case !*update:
		require.Equal(t, part[6], got, "%s: %s", where, part[4])
	}
	client := ""
	if part[3] != "" {
		client = part[3] + ": "
	}
	return part[1] + part[2] + client + part[4] + part[5] + "-> " + got + part[7]
}

// abbreviates reports whether a page shows a reply with "..." for some words of it.
func abbreviates(shown, reply string) bool {
	parts := strings.Split(shown, "...")
	for i, part := range parts {
		at := strings.Index(reply, part)
		switch {
		case at < 0, i == 0 && at > 0, i == len(parts)-1 && !strings.HasSuffix(reply, part):
			return false
		}
		reply = reply[at+len(part):]
	}
	return len(parts) > 1
}

func (r *exampleRun) client(t *testing.T, name string) *exampleClient {
	t.Helper()
	if c := r.clients[name]; c != nil {
		return c
	}
	c := &exampleClient{engine: r.server.Engine(), lane: r.server.Engine().NewWorker(), wakes: make(chan struct{}, 1)}
	var rejection []byte
	c.session, rejection = r.server.Engine().Open(c)
	require.Empty(t, rejection)
	r.clients[name] = c
	return c
}

// exampleClient is a connection without a socket. It is its own transport.Peer.
type exampleClient struct {
	engine  *session.Engine
	session transport.Session
	lane    transport.Worker
	wakes   chan struct{}
	waiting bool
}

// Wake implements transport.Peer.
func (c *exampleClient) Wake() {
	select {
	case c.wakes <- struct{}{}:
	default:
	}
}

// Abort implements transport.Peer.
func (*exampleClient) Abort() {}

// Held implements transport.Peer.
func (*exampleClient) Held() (input, output int64) { return 0, 0 }

// RemoteAddr implements transport.Peer.
func (*exampleClient) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// LocalAddr implements transport.Peer.
func (*exampleClient) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }

// do sends a command, or goes on waiting for the reply of the last one, and returns
// the reply as the pages write it.
func (c *exampleClient) do(t *testing.T, where, text string) string {
	t.Helper()
	if text == "..." {
		require.True(t, c.waiting, "%s: nothing is waited for", where)
		return c.await(t, where)
	}
	require.False(t, c.waiting, "%s: this client waits for a reply", where)
	words := splitWords(text)
	frame := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		frame = fmt.Appendf(frame, "$%d\r\n%s\r\n", len(w), w)
	}
	turn := c.session.Feed(c.lane, frame, nil)
	if len(turn.Out) > 0 {
		return c.show(t, where, turn.Whole())
	}
	c.waiting = true
	if c.inBackground(words) {
		return c.await(t, where)
	}
	return "waits"
}

// inBackground reports whether the reply to a command that has none yet comes by itself.
func (c *exampleClient) inBackground(words []string) bool {
	args := make([][]byte, len(words))
	for i, w := range words {
		args[i] = []byte(w)
	}
	cmd := c.engine.Table().Lookup(args[0])
	return cmd != nil && cmd.Flags&command.FlagBlocking == 0 && (cmd.Waits == nil || !cmd.Waits(&c.engine.Server, args))
}

// splitWords cuts a command at its blanks; a word in double quotes may hold some.
func splitWords(command string) []string {
	var words []string
	for i, part := range strings.Split(command, `"`) {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

// await feeds the session whenever it is woken, until the reply is there.
func (c *exampleClient) await(t *testing.T, where string) string {
	t.Helper()
	for {
		select {
		case <-c.wakes:
			if turn := c.session.Feed(c.lane, nil, nil); len(turn.Out) > 0 {
				c.waiting = false
				return c.show(t, where, turn.Out)
			}
		case <-time.After(time.Minute):
			require.Fail(t, "no reply came", where)
		}
	}
}

func (c *exampleClient) show(t *testing.T, where string, reply []byte) string {
	t.Helper()
	text, rest := showReply(string(reply), true)
	require.Empty(t, rest, where)
	return text
}

// showReply writes the first reply in s, of RESP2, as the pages do: numbers and
// texts as they are, arrays in brackets but for the outermost.
func showReply(s string, outermost bool) (text, rest string) {
	head, rest, _ := strings.Cut(s[1:], "\r\n")
	var n int
	switch s[0] {
	case '-':
		return "(error) " + head, rest
	case '$', '*':
		_, _ = fmt.Sscan(head, &n) // the server's own lengths
	default:
		return head, rest
	}
	switch {
	case n < 0:
		return "(nil)", rest
	case s[0] == '$':
		return strings.ReplaceAll(rest[:n], "\n", `\n`), rest[n+2:]
	}
	parts := make([]string, n)
	for i := range parts {
		parts[i], rest = showReply(rest, false)
	}
	if text = strings.Join(parts, " "); !outermost {
		text = "[" + text + "]"
	}
	return text, rest
}
