package script_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/script"
	"github.com/cellserver/cellserver/internal/simnet"
)

func TestParse(t *testing.T) {
	s, err := script.Parse("name", `# a comment

== first
@ proto 3
@ config requirepass secret
> CL.THROTTLE k 15 30 60
< [0, 16,
    15, -1, 2]
b>> "PING\r\n"
b<2 +PONG
@ +1.5s
== second
> PING
`)
	require.NoError(t, err)
	require.Len(t, s.Sections, 2)
	first := s.Sections[0]
	require.Equal(t, "first", first.Title)
	require.Equal(t, []int{3}, first.Protocols)
	require.Equal(t, [][2]string{{"requirepass", "secret"}}, first.Config)
	require.Equal(t, []script.Step{
		{Line: 6, Kind: script.Send, Text: "CL.THROTTLE k 15 30 60"},
		{Line: 7, Kind: script.Expect, Text: "[0, 16, 15, -1, 2]"},
		{Line: 9, Kind: script.SendRaw, Conn: "b", Text: `"PING\r\n"`},
		{Line: 10, Kind: script.Expect, Conn: "b", Proto: 2, Text: "+PONG"},
		{Line: 11, Kind: script.Directive, Text: "+1.5s"},
	}, first.Steps)
	require.Equal(t, []int{2, 3}, s.Sections[1].Protocols)
	require.Same(t, first, s.Section("first"))
	require.Nil(t, s.Section("third"))
	require.Equal(t, [][]string{{"CL.THROTTLE", "k", "15", "30", "60"}}, s.Commands(), "the PING of the second section is not answered")
}

// TestParseRefuses: a mistake in a script is found before it runs, so that no line is ignored.
func TestParseRefuses(t *testing.T) {
	for _, line := range []string{
		"PING", "> ", ">PING", `> "open`, "> ${open", "> ${x*a}", "< ", "< nosuch", "< [1", "< [1 2]", "< {1, 2}", `< "open`,
		"< /(/", "< 1 2", "< int(1..x)", "< int(1", "< int as", "< +", "< double 1", "< txt", "< any",
		"@ proto 4", "@ proto", "@ config a", "@ string k", "@ string k v never", "@ list", "@ blocked", "@ blocked x",
		"@ +x", "@ yesterday", "@ nosuch 1 2", "a b> PING", "== t",
	} {
		_, err := script.Parse("name", "== t\n"+line+"\n")
		require.ErrorContains(t, err, "name:2", "%q", line)
	}
	_, err := script.Parse("name", "> PING\n")
	require.ErrorContains(t, err, "before the first section")
}

// play runs the first section of text against a server of this program.
func play(t *testing.T, text string) (script.Result, error) {
	t.Helper()
	s, err := script.Parse("name", text)
	require.NoError(t, err)
	return script.Run(s.Sections[0], 2, target(t))
}

// target runs a server on its own network until the test ends.
func target(t *testing.T) script.Target {
	t.Helper()
	network := simnet.New()
	l, err := network.Listen("127.0.0.1:6379")
	require.NoError(t, err)
	server, err := inproc.New(inproc.Epoch, []net.Listener{l}, "--transport", "goroutine")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- server.Run(context.Background()) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-done)
	})
	return script.Target{
		Dial:  func() (net.Conn, error) { return network.Dial(t.Context(), "127.0.0.2", l.Addr().String()) },
		Clock: server.Clock,
	}
}

func TestRun(t *testing.T) {
	result, err := play(t, `== t
> CLIENT ID
< int as id
> ECHO ${id}${3*x}
< "${id}xxx"
> CL.THROTTLE k 0 1 60
< [0, 1, 0, -1, 60]
@ +20s
> PTTL k
< 40000
@ 1700000060000000000
> EXISTS k
< 0
b> HELLO 3
b< {"proto": 3, ...}
b>2 ECHO never
b<2 "never"
b>3 ECHO always
b< "always"
b> QUIT
b< +OK
b< closed
`)
	require.NoError(t, err)
	require.Empty(t, result.Differences)
	require.Empty(t, result.LeftOut)
	require.Contains(t, result.Answered, "ECHO ${id}${3*x}")
}

func TestRunReportsDifferences(t *testing.T) {
	result, err := play(t, `== t
> ECHO a
< "b"
> ECHO c
< "c"
> PING
< closed
`)
	require.NoError(t, err)
	require.Len(t, result.Differences, 2)
	require.Equal(t, script.Difference{Line: 3, Command: "ECHO a", What: "want \"b\"\n got \"a\""}, result.Differences[0])
	require.Contains(t, result.Differences[1].What, "got")
}

// TestRunNoticesRepliesTooMany: a command without a reply line must get no reply.
func TestRunNoticesRepliesTooMany(t *testing.T) {
	result, err := play(t, "== t\n> PING\n")
	require.NoError(t, err)
	require.Len(t, result.Differences, 1)
	require.Contains(t, result.Differences[0].What, "too many")
}

func TestRunStopsWhenTheServerHangsUp(t *testing.T) {
	_, err := play(t, "== t\n> QUIT\n< +OK\n> PING\n< +PONG\n")
	require.Error(t, err)
	_, err = play(t, "== t\n> ECHO ${nosuch}\n< *\n")
	require.ErrorContains(t, err, "nothing is called ${nosuch}")
}

// TestRunLeavesOut: a step that a server in real time cannot run ends the section without a
// failure.
func TestRunLeavesOut(t *testing.T) {
	target := target(t)
	target.Clock = nil
	for _, line := range []string{"@ +2h", "@ 1700000000000000000", "@ string k v", "@ list k"} {
		s, err := script.Parse("name", "== t\n> PING\n< +PONG\n"+line+"\n> PING\n< +NEVER\n")
		require.NoError(t, err)
		result, err := script.Run(s.Sections[0], 2, target)
		require.NoError(t, err)
		require.Empty(t, result.Differences)
		require.Contains(t, result.LeftOut, "line 4")
	}
	s, err := script.Parse("name", "== t\n@ +1ms\n@ timers 5\n@ blocked 0\n> PING\n< +PONG\n")
	require.NoError(t, err)
	began := time.Now()
	result, err := script.Run(s.Sections[0], 2, target)
	require.NoError(t, err)
	require.Empty(t, result.LeftOut)
	require.GreaterOrEqual(t, time.Since(began), time.Millisecond, "a short step is really waited")
}
