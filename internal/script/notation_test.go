package script_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/script"
	"github.com/cellserver/cellserver/internal/simnet"
)

// answer plays a section with one command against a server that replies with wire.
func answer(t *testing.T, proto int, pattern, wire string) (script.Result, error) {
	t.Helper()
	s, err := script.Parse("test", "== t\n> PING\n< "+pattern+"\n")
	require.NoError(t, err)
	network := simnet.New()
	l, err := network.Listen("127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	served := make(chan error, 1)
	go func() { served <- serveOnce(l, wire) }()
	result, err := script.Run(s.Sections[0], proto, script.Target{
		Dial: func() (net.Conn, error) { return network.Dial(t.Context(), "127.0.0.2", l.Addr().String()) },
	})
	require.NoError(t, <-served)
	return result, err
}

// serveOnce replies to HELLO with a map and to everything else with wire, until the client
// disconnects.
func serveOnce(l net.Listener, wire string) error {
	c, err := l.Accept()
	if err != nil {
		return fmt.Errorf("accepting: %w", err)
	}
	defer func() { _ = c.Close() }() // the client has disconnected
	in := bufio.NewReader(c)
	for {
		v, err := script.ReadValue(in)
		if err != nil {
			return nil // the client has disconnected
		}
		reply := wire
		if v.Elems[0].Text == "HELLO" {
			reply = "%1\r\n$5\r\nproto\r\n:3\r\n"
		}
		if _, err := c.Write([]byte(reply)); err != nil {
			return fmt.Errorf("answering: %w", err)
		}
	}
}

// TestPatterns: each pattern in both protocols, with a reply that it matches and one that it must
// not match.
func TestPatterns(t *testing.T) {
	for _, c := range []struct{ pattern, resp2, resp3, not string }{
		{"12", ":12\r\n", ":12\r\n", "$2\r\n12\r\n"},
		{"-1", ":-1\r\n", ":-1\r\n", ":1\r\n"},
		{"int", ":7\r\n", ":7\r\n", "+7\r\n"},
		{"int(-5..5)", ":-5\r\n", ":5\r\n", ":6\r\n"},
		{`"a\x00\r\n"`, "$4\r\na\x00\r\n\r\n", "$4\r\na\x00\r\n\r\n", "+a\r\n"},
		{`""`, "$0\r\n\r\n", "$0\r\n\r\n", "$-1\r\n"},
		{`/a.*\/b/`, "$4\r\na\r/b\r\n", "$4\r\na\n/b\r\n", "$5\r\na/b/c\r\n"},
		{"+OK", "+OK\r\n", "+OK\r\n", "$2\r\nOK\r\n"},
		{`+"O, K"`, "+O, K\r\n", "+O, K\r\n", "-O, K\r\n"},
		{"-ERR [a], {b}", "-ERR [a], {b}\r\n", "-ERR [a], {b}\r\n", "-ERR\r\n"},
		{`-/ERR .*/`, "-ERR x\r\n", "-ERR y\r\n", "+ERR x\r\n"},
		{`txt"a:b"`, "$3\r\na:b\r\n", "=7\r\ntxt:a:b\r\n", "+a:b\r\n"},
		{"txt/a.*/", "$3\r\na:b\r\n", "=7\r\ntxt:a:b\r\n", "=7\r\nmkd:a:b\r\n"},
		{"null", "$-1\r\n", "_\r\n", "*-1\r\n"},
		{"null-array", "*-1\r\n", "_\r\n", "$-1\r\n"},
		{"double(1.5)", "$3\r\n1.5\r\n", ",1.5\r\n", ":1\r\n"},
		{"bool(t)", ":1\r\n", "#t\r\n", ":0\r\n"},
		{"bool(f)", ":0\r\n", "#f\r\n", ":1\r\n"},
		{"[]", "*0\r\n", "*0\r\n", "*-1\r\n"},
		{`[1, +OK, -ERR no, "x"]`, "*4\r\n:1\r\n+OK\r\n-ERR no\r\n$1\r\nx\r\n", "*4\r\n:1\r\n+OK\r\n-ERR no\r\n$1\r\nx\r\n", "*1\r\n:1\r\n"},
		{"[1, ...]", "*2\r\n:1\r\n:2\r\n", "*1\r\n:1\r\n", "*2\r\n:2\r\n:1\r\n"},
		{"any[1, 2]", "*2\r\n:2\r\n:1\r\n", "*2\r\n:1\r\n:2\r\n", "*2\r\n:1\r\n:1\r\n"},
		{`{"a": 1, "b": [*]}`, "*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n*1\r\n+x\r\n", "%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n*1\r\n+x\r\n", "*2\r\n$1\r\na\r\n:1\r\n"},
		{`{"b": 2, ...}`, "*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:2\r\n", "%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:2\r\n", "*2\r\n$1\r\na\r\n:2\r\n"},
		{"~[+a, +b]", "*2\r\n+b\r\n+a\r\n", "~2\r\n+b\r\n+a\r\n", "*2\r\n+a\r\n+a\r\n"},
		{`>["x", [1]]`, "*2\r\n$1\r\nx\r\n*1\r\n:1\r\n", ">2\r\n$1\r\nx\r\n*1\r\n:1\r\n", "*1\r\n$1\r\nx\r\n"},
		{"*", ":1\r\n", "%0\r\n", ""},
	} {
		for proto, wire := range map[int]string{2: c.resp2, 3: c.resp3} {
			result, err := answer(t, proto, c.pattern, wire)
			require.NoError(t, err, c.pattern)
			require.Empty(t, result.Differences, "%s on RESP%d", c.pattern, proto)
			require.Equal(t, []string{"PING"}, result.Answered)
		}
		if c.not != "" {
			result, err := answer(t, 2, c.pattern, c.not)
			require.NoError(t, err, c.pattern)
			require.Len(t, result.Differences, 1, "%s must not match %q", c.pattern, c.not)
		}
	}
}

// TestPatternsOfTheOtherProtocol: types of RESP3 do not match as those of RESP2, nor the reverse.
func TestPatternsOfTheOtherProtocol(t *testing.T) {
	for pattern, wires := range map[string][2]string{
		"{1: 2}":      {"*2\r\n:1\r\n:2\r\n", "%1\r\n:1\r\n:2\r\n"},
		"~[1]":        {"*1\r\n:1\r\n", "~1\r\n:1\r\n"},
		`txt"a"`:      {"$1\r\na\r\n", "=5\r\ntxt:a\r\n"},
		"null":        {"$-1\r\n", "_\r\n"},
		"null-array":  {"*-1\r\n", "_\r\n"},
		"double(1.5)": {"$3\r\n1.5\r\n", ",1.5\r\n"},
		"bool(t)":     {":1\r\n", "#t\r\n"},
	} {
		for i, wire := range wires {
			other := 3 - i // the protocol that the reply is not in
			result, err := answer(t, other, pattern, wire)
			require.NoError(t, err)
			require.Len(t, result.Differences, 1, "%s must not match %q on RESP%d", pattern, wire, other)
		}
	}
}

// TestValuesPrintAsPatterns: a reply in the message of a failure can be pasted into a script.
func TestValuesPrintAsPatterns(t *testing.T) {
	for wire, want := range map[string]string{
		":12\r\n":                     "12",
		"$4\r\na\"\x00\n\r\n":         `"a\"\x00\n"`,
		"+OK\r\n":                     `+"OK"`,
		"-ERR x\r\n":                  `-"ERR x"`,
		"$-1\r\n":                     "null",
		"*-1\r\n":                     "null-array",
		"_\r\n":                       "null",
		"=7\r\ntxt:a:b\r\n":           `txt"a:b"`,
		",1.5\r\n":                    "double(1.5)",
		"#t\r\n":                      "bool(t)",
		"*2\r\n:1\r\n*0\r\n":          "[1, []]",
		"%1\r\n+a\r\n~1\r\n:1\r\n":    `{+"a": ~[1]}`,
		">1\r\n$1\r\n\x80\r\n":        `>["\x80"]`,
		"$6\r\n\\\t\r\nab\r\n":        `"\\\t\r\nab"`,
		"*1\r\n%0\r\n":                "[{}]",
		":-9223372036854775808\r\n":   "-9223372036854775808",
		"*1\r\n-ERR in a bracket\r\n": `[-"ERR in a bracket"]`,
	} {
		v, err := script.ReadValue(bufio.NewReader(strings.NewReader(wire)))
		require.NoError(t, err, wire)
		require.Equal(t, want, v.String())
	}
}

// TestMalformedReplies: an invalid reply is an error, and never causes a hang or a large
// allocation.
func TestMalformedReplies(t *testing.T) {
	for _, wire := range []string{
		"", "\r\n", "x\r\n", ":\r\n", ":x\r\n", ":1\n", "+a\rb\r\n", "$x\r\n", "$-2\r\n", "$5\r\nab\r\n", "$1\r\nabc",
		"*x\r\n", "*-2\r\n", "*1\r\n", "%-1\r\n", "$99999999999\r\n", "*99999999999\r\n", "~1\r\n:x\r\n",
	} {
		_, err := script.ReadValue(bufio.NewReader(strings.NewReader(wire)))
		require.Error(t, err, "%q", wire)
	}
}
