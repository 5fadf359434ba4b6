package resp_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/resp"
)

// TestTooLongIsRefusedAndThrownAway: a command beyond the limits gets an error in its turn,
// wherever its bytes are split. None of its bytes are kept, and the bytes after it are a command
// again.
func TestTooLongIsRefusedAndThrownAway(t *testing.T) {
	lim := resp.Limits{MaxArgs: 100, MaxBulk: 50, MaxCommand: 200, MaxInline: 64, MaxSkip: 1000}
	text := func(n int) string {
		return fmt.Sprintf("$%d\r\n%s\r\n", n, strings.Repeat("*1\r\n$4\r\nQUIT\r\n", n/14+1)[:n])
	}
	ping := "*1\r\n$4\r\nPING\r\n"
	for name, c := range map[string]struct{ stream, refused string }{
		"last argument":   {"*3\r\n" + text(3) + text(1) + text(51), "of 51 bytes is longer than proto-max-bulk-len, 50"},
		"first argument":  {"*3\r\n" + text(900) + text(1) + text(51), "of 900 bytes is longer than proto-max-bulk-len, 50"},
		"only argument":   {"*1\r\n" + text(60), "of 60 bytes"},
		"many in all":     {"*8\r\n" + strings.Repeat(text(40), 8), "longer than client-query-buffer-limit admits, 200"},
		"empty ones left": {"*4\r\n" + text(60) + text(0) + text(60) + text(0), "of 60 bytes"},
	} {
		stream := ping + c.stream + ping
		for cut := range len(stream) {
			var g resp.Guard
			var got []string
			pending := []byte(nil)
			for _, part := range []string{stream[:cut], stream[cut:]} {
				pending = append(pending, part...)
				for len(pending) > 0 {
					args, n, err := g.Next(pending, nil, &lim)
					if err != "" {
						require.True(t, err.Refuses(), "%s: %s", name, err)
						got = append(got, string(err))
					} else if len(args) > 0 {
						got = append(got, string(bytes.Join(args, []byte(" "))))
					}
					pending = pending[n:]
					if n == 0 {
						break
					}
				}
			}
			require.Empty(t, pending, "%s at %d", name, cut)
			require.Len(t, got, 3, "%s at %d", name, cut)
			require.Equal(t, "PING", got[0])
			require.Contains(t, got[1], c.refused, name)
			require.Equal(t, "PING", got[2])
		}
	}
}

// TestTooLongIsRefusedWhereverTheBoundFalls: also between two arguments, and in the head of an
// argument.
func TestTooLongIsRefusedWhereverTheBoundFalls(t *testing.T) {
	lim := resp.Limits{MaxArgs: 100, MaxBulk: 50, MaxCommand: 200, MaxInline: 64, MaxSkip: 1000}
	const tooLong = "ERR the command is longer than client-query-buffer-limit admits, 200"
	for first := range 50 {
		words := append([]string{strings.Repeat("x", first)}, strings.Fields(strings.Repeat("0123456789 ", 20))...)
		stream := append(frameOf(words...), frameOf("PING")...)
		for cut := range len(stream) {
			c := connection{lim: lim}
			c.receive(stream[:cut])
			c.receive(stream[cut:])
			require.Equal(t, [][]string{{tooLong}, {"PING"}}, c.commands, "%d at %d", first, cut)
			require.Empty(t, c.err)
		}
	}
}

// TestAnUnfinishedCommandIsGivenUp: wherever the received part of an abandoned command ends, its
// rest is skipped, and the bytes after it are a command again.
func TestAnUnfinishedCommandIsGivenUp(t *testing.T) {
	lim := resp.DefaultLimits()
	lim.MaxSkip = 1000
	const ping = "*1\r\n$4\r\nPING\r\n"
	const set = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$40\r\n*1\r\n$4\r\nQUIT\r\n*1\r\n$4\r\nQUIT\r\n*1\r\n$4\r\n1234\r\n"
	for cut := range set {
		var g resp.Guard
		args, n, err := g.Next([]byte(set[:cut]), nil, &lim)
		require.Empty(t, err)
		require.Empty(t, args)
		require.Zero(t, n)
		n, ok := g.GiveUp(resp.ErrOOM, &lim)
		require.Equal(t, cut >= len("*3\r\n"), ok, "at %d", cut)
		var got []string
		for rest := []byte(set[n:] + ping); len(rest) > 0; rest = rest[n:] {
			args, n, err = g.Next(rest, nil, &lim)
			require.Positive(t, n, "at %d: %q", cut, rest)
			switch {
			case err != "":
				require.True(t, err.Refuses())
				got = append(got, string(err))
			case len(args) > 0:
				got = append(got, string(args[0]))
			}
		}
		if want := []string{string(resp.ErrOOM), "PING"}; ok {
			require.Equal(t, want, got, "at %d", cut)
		} else {
			require.Equal(t, []string{"SET", "PING"}, got)
		}
		_, ok = g.GiveUp(resp.ErrOOM, &lim)
		require.False(t, ok, "nothing is unfinished")
	}
}

// TestMalformedLengthClosesEvenWhileSkipping sends text that is not a length, and lengths that no
// client would send. They end the connection, also while an argument is skipped.
func TestMalformedLengthClosesEvenWhileSkipping(t *testing.T) {
	lim := resp.Limits{MaxArgs: 100, MaxBulk: 50, MaxCommand: 200, MaxInline: 64, MaxSkip: 1000}
	pre := lim.PreAuth()
	thrown := "*2\r\n$60\r\n" + strings.Repeat("x", 60) + "\r\n"
	for stream, c := range map[string]struct {
		lim  resp.Limits
		want string
	}{
		"*1\r\n$-1\r\n":                  {lim, "invalid bulk length"},
		"*1\r\n$1001\r\n":                {lim, "invalid bulk length"},
		"*1\r\n$9223372036854775807\r\n": {lim, "invalid bulk length"},
		thrown + "$-1\r\n":               {lim, "invalid bulk length"},
		thrown + "$x\r\n":                {lim, "invalid bulk length"},
		thrown + "$950\r\n":              {lim, "invalid bulk length"},
		// These lengths overflow when the skipped bytes or a line end are added.
		thrown + "$9223372036854775805\r\n": {lim, "invalid bulk length"},
		thrown + "$9223372036854775807\r\n": {lim, "invalid bulk length"},
		thrown + "+950\r\n":                 {lim, "expected '$', got '+'"},
		thrown + strings.Repeat("1", 70):    {lim, "too big bulk count string"},
		"*1\r\n$60\r\n":                     {pre, "invalid bulk length"},
	} {
		var g resp.Guard
		in := []byte(stream)
		var err resp.Error
		for err == "" && len(in) > 0 {
			var n int
			_, n, err = g.Next(in, nil, &c.lim)
			in = in[n:]
			if n == 0 {
				break
			}
		}
		require.Contains(t, string(err), c.want, stream)
		require.False(t, err.Refuses(), stream)
	}
}
