package resp_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/resp"
)

// frameOf returns a command as clients send it.
func frameOf(args ...string) []byte {
	frame := []byte("*" + strconv.Itoa(len(args)) + "\r\n")
	for _, arg := range args {
		frame = append(frame, "$"+strconv.Itoa(len(arg))+"\r\n"+arg+"\r\n"...)
	}
	return frame
}

// connection uses a guard as the engine does: it keeps the bytes that are not consumed, takes
// complete commands, and stops at the first error that ends the connection.
type connection struct {
	guard    resp.Guard
	lim      resp.Limits
	pending  []byte
	scratch  [][]byte
	commands [][]string // and refusals, in order
	err      resp.Error
}

// receive adds bytes and takes every complete command. It moves the pending bytes to new memory
// every time and overwrites the old memory, so that a guard with a reference to it is detected.
func (c *connection) receive(chunk []byte) {
	if c.err != "" {
		return // the connection is closed
	}
	old := c.pending
	c.pending = append(append(make([]byte, 0, len(old)+len(chunk)), old...), chunk...)
	clear(old)
	for c.err == "" {
		args, n, err := c.guard.Next(c.pending, c.scratch, &c.lim)
		if len(args) > 0 {
			command := make([]string, len(args))
			for i, arg := range args {
				command[i] = string(arg)
			}
			c.commands = append(c.commands, command)
		}
		c.scratch = args
		c.pending = c.pending[n:]
		if err.Refuses() {
			c.commands = append(c.commands, []string{string(err)})
			continue
		}
		c.err = err
		if len(args) == 0 {
			return
		}
	}
}

// split returns the commands and the error of a stream that arrives in chunks.
func split(lim resp.Limits, chunks ...[]byte) (commands [][]string, err resp.Error) {
	c := connection{lim: lim}
	for _, chunk := range chunks {
		c.receive(chunk)
	}
	return c.commands, c.err
}

// bytewise cuts a stream into chunks of one byte.
func bytewise(stream []byte) [][]byte {
	chunks := make([][]byte, len(stream))
	for i := range stream {
		chunks[i] = stream[i : i+1]
	}
	return chunks
}

// requireSplit checks the commands and the error of a stream that arrives whole and in pieces. The
// pieces are single bytes, or small chunks of a long stream, for which copying the rest for each
// byte would take too long.
func requireSplit(t *testing.T, lim resp.Limits, stream string, want [][]string, wantErr resp.Error) {
	t.Helper()
	commands, err := split(lim, []byte(stream))
	require.Equal(t, wantErr, err)
	require.Equal(t, want, commands)
	pieces := bytewise([]byte(stream))
	if len(stream) > 4096 {
		pieces = randomChunks([]byte(stream), 5)
	}
	commands, err = split(lim, pieces...)
	require.Equal(t, wantErr, err, "in pieces")
	require.Equal(t, want, commands, "in pieces")
}

func TestNextReportsWhatItConsumed(t *testing.T) {
	lim := resp.DefaultLimits()
	steps := []struct {
		in   string
		args [][]byte
		n    int
	}{
		{"", nil, 0},
		{"*0\r\n\r\n*1\r\n$4\r\nPI", nil, 6},
		{"*1\r\n$4\r\nPING\r", nil, 0},
		{"*1\r\n$4\r\nPING\r\n+", [][]byte{[]byte("PING")}, 14},
		{"+", nil, 0},
		{"+ a \n*-1\r\n", [][]byte{[]byte("+"), []byte("a")}, 5},
		{"*-1\r\n", nil, 5},
		{"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n\n", [][]byte{[]byte("ECHO"), {}}, 20},
		{"\n", nil, 1},
	}
	var g resp.Guard
	for _, s := range steps {
		args, n, err := g.Next([]byte(s.in), nil, &lim)
		require.Empty(t, err)
		require.Equal(t, s.n, n, s.in)
		require.Len(t, args, len(s.args), s.in)
		for i := range args {
			require.Equal(t, string(s.args[i]), string(args[i]))
		}
	}
	require.Equal(t, resp.Guard{}, g)
}

func TestNextPointsIntoItsInput(t *testing.T) {
	lim := resp.DefaultLimits()
	for _, stream := range []string{"*2\r\n$4\r\nECHO\r\n$1\r\na\r\n", "ECHO a\r\n"} {
		in := []byte(stream)
		var g resp.Guard
		args, _, _ := g.Next(in, nil, &lim)
		require.Len(t, args, 2)
		in[bytes.LastIndexByte(in, 'a')] = 'z'
		require.Equal(t, "z", string(args[1]))
		require.Equal(t, len(args[1]), cap(args[1]), "appending to an argument must not reach the next bytes")
	}
}

func TestNextRepeatsAnError(t *testing.T) {
	lim := resp.DefaultLimits()
	for stream, want := range map[string]resp.Error{
		"*x\r\n":          resp.ErrMultibulkLength,
		"*1\r\n$x\r\n":    resp.ErrBulkLength,
		"ECHO \"a\"b\r\n": resp.ErrUnbalanced,
	} {
		var g resp.Guard
		for range 3 {
			args, _, err := g.Next([]byte(stream), nil, &lim)
			require.Equal(t, want, err)
			require.Empty(t, args)
		}
	}
}

func TestLengthsParseAsRedisDoes(t *testing.T) {
	// redcon reads 2^64+1 as 1; a proxy in front of it may not.
	lim := resp.DefaultLimits()
	for text, swallowed := range map[string]bool{
		"0": true, "-1": true, "-10": true, "-9223372036854775808": true,
		"": false, "-": false, "-0": false, "00": false, "01": false, "+1": false, " 1": false, "1 ": false, "1a": false,
		"0x1": false, "1e0": false, "--1": false, "-01": false, ":": false, "/": false,
		"9223372036854775807": false, "9223372036854775808": false, "-9223372036854775809": false,
		"18446744073709551617": false, "18446744073709551620": false, "10000000000000000000": false, "99999999999999999999999999": false,
	} {
		var want resp.Error = resp.ErrMultibulkLength
		if swallowed {
			want = ""
		}
		requireSplit(t, lim, "*"+text+"\r\n", nil, want)
		if text != "0" {
			requireSplit(t, lim, "*1\r\n$"+text+"\r\n", nil, resp.ErrBulkLength)
		}
	}
	requireSplit(t, lim, "*2\r\n$0\r\n\r\n$0\r\n\r\n", [][]string{{"", ""}}, "")
	for size := range 300 {
		arg := string(bytes.Repeat([]byte("x"), size))
		requireSplit(t, lim, string(frameOf("ECHO", arg)), [][]string{{"ECHO", arg}}, "")
	}
}

func TestLimitsCloseTheConnectionWithTheTextsOfRedis(t *testing.T) {
	lim := resp.DefaultLimits()
	pre := lim.PreAuth()
	tiny := resp.Limits{MaxArgs: 9, MaxBulk: 9, MaxCommand: 31, MaxInline: 64}
	head := func(count, size int64) string { return fmt.Sprintf("*%d\r\n$%d\r\n", count, size) }
	cases := map[string]struct {
		lim    resp.Limits
		stream string
		want   resp.Error
	}{
		"arguments":               {lim, head(65536, 1), ""},
		"too many arguments":      {lim, head(65537, 1), resp.ErrMultibulkLength},
		"argument":                {lim, head(1, 1<<20-17), ""},
		"argument fills command":  {lim, head(1, 1<<20-16), ""},
		"argument over command":   {lim, head(1, 1<<20-15), resp.ErrCommandTooBig},
		"argument at its limit":   {lim, head(1, 1<<20), resp.ErrCommandTooBig},
		"too long argument":       {lim, head(1, 1<<20+1), resp.ErrBulkLength},
		"greatest argument":       {lim, head(1, math.MaxInt64), resp.ErrBulkLength},
		"head over command":       {tiny, "*3\r\n$9\r\n123456789\r\n$111111111111", resp.ErrCommandTooBig},
		"head within command":     {tiny, "*3\r\n$9\r\n123456789\r\n$11111111111", ""},
		"pre-auth arguments":      {pre, head(10, 1), ""},
		"pre-auth too many":       {pre, head(11, 1), resp.ErrUnauthMultibulk},
		"pre-auth far too many":   {pre, head(65537, 1), resp.ErrMultibulkLength},
		"pre-auth argument":       {pre, head(1, 4096), ""},
		"pre-auth too long":       {pre, head(1, 4097), resp.ErrUnauthBulk},
		"pre-auth far too long":   {pre, head(1, 1<<20+1), resp.ErrBulkLength},
		"pre-auth whole command":  {pre, "*5\r\n" + string(bytes.Repeat([]byte("$4000\r\n"+string(make([]byte, 4000))+"\r\n"), 4)) + "$400\r\n", resp.ErrCommandTooBig},
		"pre-auth line":           {pre, string(bytes.Repeat([]byte("a"), 16384)), ""},
		"pre-auth too long line":  {pre, string(bytes.Repeat([]byte("a"), 16385)), resp.ErrInlineTooBig},
		"pre-auth too long count": {pre, "*" + string(bytes.Repeat([]byte("1"), 16384)), resp.ErrMbulkCountBig},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { requireSplit(t, c.lim, c.stream, nil, c.want) })
	}
}

func TestNextAllocatesNothing(t *testing.T) {
	lim := resp.DefaultLimits()
	scratch := make([][]byte, 0, 64)
	long := frameOf("ECHO", string(make([]byte, 5000)), "a")
	for name, in := range map[string][]byte{
		"frame":          throttleFrame,
		"long arguments": long,
		"swallowed":      []byte("*0\r\n\r\n*-1\r\n"),
		"inline":         []byte("CL.THROTTLE user:123 15 30 60 1\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			var g resp.Guard
			require.Zero(t, testing.AllocsPerRun(100, func() { scratch, _, _ = g.Next(in, scratch, &lim) }))
			require.Zero(t, testing.AllocsPerRun(10, func() {
				for i, start := 0, 0; i < len(in); i++ {
					var n int
					scratch, n, _ = g.Next(in[start:i+1], scratch, &lim)
					start += n
				}
			}), "byte by byte")
		})
	}
}

// TestUnfinishedFramesTakeNoRoomForArguments: the arguments of a frame that comes in pieces are
// located again once the frame is complete. Until then they take only the existing room.
func TestUnfinishedFramesTakeNoRoomForArguments(t *testing.T) {
	const count, room = 20_000, 16
	frame := resp.AppendCommand(nil, slices.Repeat([]string{"word"}, count)...)
	lim := resp.DefaultLimits()
	var g resp.Guard
	args := make([][]byte, 0, room)
	for end := 10_000; end < len(frame); end += 10_000 {
		var n int
		var err resp.Error
		args, n, err = g.Next(frame[:end], args, &lim)
		require.Empty(t, args)
		require.Zero(t, n)
		require.Empty(t, err)
		require.Equal(t, room, cap(args), "after %d bytes", end)
	}
	args, n, err := g.Next(frame, args, &lim)
	require.Empty(t, err)
	require.Equal(t, len(frame), n)
	require.Len(t, args, count)
}
