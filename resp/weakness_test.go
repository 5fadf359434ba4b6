package resp_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/cellserver/cellserver/resp"
)

// This file has one test for each weakness of redcon's reader that framing can close. Lengths that
// overflow are in TestLengthsParseAsRedisDoes. The tests of deadlines, buffers, accept and close
// are in package server.

// drip passes a stream to a new guard byte by byte. It returns the number of commands and of
// arguments, the error and the allocations. A guard that examined its pending bytes again each time
// would need hours for the streams of the tests below, and a recursive one would overflow the
// stack.
func drip(t *testing.T, stream []byte) (commands, arguments int, err resp.Error, allocations uint64) {
	t.Helper()
	lim := resp.DefaultLimits()
	scratch := make([][]byte, 0, lim.MaxArgs)
	var g resp.Guard
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for end, start := 1, 0; end <= len(stream) && err == ""; end++ {
		var n int
		scratch, n, err = g.Next(stream[start:end], scratch, &lim)
		start += n
		if len(scratch) > 0 {
			commands++
			arguments += len(scratch)
		}
	}
	runtime.ReadMemStats(&after)
	return commands, arguments, err, after.Mallocs - before.Mallocs
}

func TestHugeLengthsDoNotOverflow(t *testing.T) {
	// redcon adds an unchecked length to its index and panics.
	lim := resp.DefaultLimits()
	random := rand.New(rand.NewPCG(1, 1))
	edges := []uint64{0, 1, 1 << 20, 1<<20 + 1, math.MaxInt32, math.MaxUint32, math.MaxInt64 - 2, math.MaxInt64, 1 << 63, math.MaxUint64}
	for range 10_000 {
		n := random.Uint64() >> random.IntN(64)
		if random.IntN(3) == 0 {
			n = edges[random.IntN(len(edges))] + uint64(random.IntN(5)) - 2
		}
		text := []string{"", "-", "0", "+"}[max(0, random.IntN(10)-6)] + strconv.FormatUint(n, 10)
		if random.IntN(5) == 0 {
			text += strconv.FormatUint(random.Uint64(), 10)
		}
		for _, stream := range []string{"*" + text + "\r\n$1\r\na\r\n", "*1\r\n$" + text + "\r\na\r\n", "*2\r\n$1\r\na\r\n$" + text + "\r\na\r\n"} {
			requireReference(t, lim, stream)
			_, _ = split(lim, bytewise([]byte(stream))...)
		}
	}
	requireSplit(t, lim, "*1\r\n$9223372036854775807\r\n", nil, resp.ErrBulkLength)
}

func TestAnnouncedArgumentsTakeNoMemory(t *testing.T) {
	// redcon loops as often as the count says, even if no arguments have arrived.
	lim := resp.DefaultLimits()
	requireSplit(t, lim, "*9223372036854775807\r\n", nil, resp.ErrMultibulkLength)
	requireSplit(t, lim, "*3000000000\r\n", nil, resp.ErrMultibulkLength)
	requireSplit(t, lim, "*65537\r\n", nil, resp.ErrMultibulkLength)

	var g resp.Guard
	scratch, _, err := g.Next([]byte("*65536\r\n$1\r\na\r\n$1\r\n"), nil, &lim)
	require.Empty(t, err)
	require.LessOrEqual(t, cap(scratch), 16, "room is made for the arguments that came, not for those announced")
}

func TestReadingByteByByteTakesLinearTime(t *testing.T) {
	// redcon recurses once per read of an unfinished command, and scans it again.
	for name, s := range map[string]struct {
		stream    []byte
		arguments int
	}{
		"one long argument":      {frameOf("ECHO", strings.Repeat("x", 1_000_000)), 2},
		"65,536 tiny arguments":  {[]byte("*65536\r\n" + strings.Repeat("$1\r\na\r\n", 65536)), 65536},
		"65,536 empty arguments": {[]byte("*65536\r\n" + strings.Repeat("$0\r\n\r\n", 65536)), 65536},
		"a long line":            {[]byte("ECHO " + strings.Repeat("a", 65530) + "\r\n"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			commands, arguments, err, allocations := drip(t, s.stream)
			require.Empty(t, err)
			require.Equal(t, 1, commands)
			require.Equal(t, s.arguments, arguments)
			require.Less(t, allocations, uint64(1000)) // the runtime makes some of its own
		})
	}
	for name, stream := range map[string]string{
		"a count without end":  "*" + strings.Repeat("1", 65535),
		"a length without end": "*1\r\n$" + strings.Repeat("1", 65535),
		"a line behind a NUL":  "\x00" + strings.Repeat("\n", 65535),
		"a count behind a NUL": "*\x00" + strings.Repeat("\r", 65534),
	} {
		t.Run(name, func(t *testing.T) {
			commands, _, err, _ := drip(t, []byte(stream))
			require.Empty(t, err)
			require.Zero(t, commands)
			_, _, err, _ = drip(t, []byte(stream+"11"))
			require.NotEmpty(t, err)
		})
	}
}

func TestInlineCommandsTakeLinearMemory(t *testing.T) {
	// redcon allocates the length of the whole line for each of its words.
	lim := resp.DefaultLimits()
	for _, word := range []string{"a ", "'' ", "\"\\x41\" ", "a\"b\" "} {
		words := lim.MaxInline / len(word)
		line := []byte(strings.Repeat(word, words) + "\n")
		var g resp.Guard
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		args, n, err := g.Next(line, nil, &lim)
		runtime.ReadMemStats(&after)
		require.Empty(t, err)
		require.Equal(t, len(line), n)
		require.Len(t, args, words)
		require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), word)
	}
}

func TestLinesWithoutEndAreRefused(t *testing.T) {
	// redcon waits for the line feed forever and searches for it from the start.
	lim := resp.DefaultLimits()
	requireSplit(t, lim, strings.Repeat("a", 65536), nil, "")
	requireSplit(t, lim, strings.Repeat("a", 65537), nil, resp.ErrInlineTooBig)
	requireSplit(t, lim, strings.Repeat("a", 65536)+"\n", [][]string{{strings.Repeat("a", 65536)}}, "")
	requireSplit(t, lim, strings.Repeat("a", 65537)+"\n", nil, resp.ErrInlineTooBig)
	requireSplit(t, lim, strings.Repeat("a", 512<<10)+"\n", nil, resp.ErrInlineTooBig)
}

func TestMisalignedPipelineLeavesNothingPending(t *testing.T) {
	// redcon's buffer doubles whenever a command straddles its end. After each
	// read the guard leaves less than one command unconsumed.
	ping := frameOf("PING")
	stream := bytes.Repeat(ping, 20_000)
	c := connection{lim: resp.DefaultLimits()}
	c.receive(stream[:5])
	for rest := stream[5:]; len(rest) > 0; {
		n := min(4096, len(rest))
		c.receive(rest[:n])
		rest = rest[n:]
		require.Less(t, len(c.pending), len(ping))
	}
	require.Empty(t, c.pending)
	require.Len(t, c.commands, 20_000)
}

func TestCommandsOverAMebibyteAreRefused(t *testing.T) {
	// redcon accepts a command of any size and keeps its buffer. The guard refuses at the length
	// that exceeds the bound, before the bytes arrive.
	lim := resp.DefaultLimits()
	requireSplit(t, lim, "*1\r\n$104857600\r\n", nil, resp.ErrBulkLength)
	requireSplit(t, lim, "*2\r\n$4\r\nECHO\r\n$1048576\r\n", nil, resp.ErrCommandTooBig)
	c := connection{lim: lim}
	c.receive([]byte("*100\r\n"))
	received := 0
	for c.err == "" {
		c.receive([]byte("$50000\r\n" + strings.Repeat("x", 50000) + "\r\n"))
		received += 50010
	}
	require.Equal(t, resp.ErrCommandTooBig, c.err)
	require.LessOrEqual(t, received, lim.MaxCommand+50010)
}

func TestCommandsBeforeAnErrorAreReturned(t *testing.T) {
	// redcon drops the complete commands of the same read.
	ping := "*1\r\n$4\r\nPING\r\n"
	for _, bad := range []string{"*x\r\n", "*1\r\n$-1\r\n", "*1\r\nPING\r\n", "ECHO \"a\"b\r\n"} {
		commands, err := split(resp.DefaultLimits(), []byte(ping+ping+bad+ping))
		require.NotEmpty(t, err)
		require.Equal(t, [][]string{{"PING"}, {"PING"}}, commands)
	}
}

func TestEmptyRequestsAreIgnored(t *testing.T) {
	// redcon closes the connection on empty requests. In Valkey (CVE-2026-27623) an empty request
	// left its kind behind, so that an inline command after it was parsed as a frame.
	lim := resp.DefaultLimits()
	for _, empty := range []string{"*0\r\n", "*-1\r\n", "*-10\r\n", "\r\n", "\n", " \r\n", "*0\r\n*0\r\n\r\n"} {
		for _, next := range []string{"PING\r\n", "*1\r\n$4\r\nPING\r\n"} {
			requireSplit(t, lim, empty+next, [][]string{{"PING"}}, "")
			requireSplit(t, lim, next+empty+next+empty, [][]string{{"PING"}, {"PING"}}, "")
			commands, err := split(lim, []byte(empty), []byte(next))
			require.Empty(t, err)
			require.Equal(t, [][]string{{"PING"}}, commands)
		}
	}
}

func TestLinesOfHTTPAreRecognised(t *testing.T) {
	// redcon runs each line of a request that an attacker made a browser send.
	for _, name := range []string{"POST", "post", "pOsT", "Host:", "host:", "HOST:"} {
		require.True(t, resp.IsCrossProtocol([]byte(name)), name)
	}
	for _, name := range []string{"", "GET", "HOST", "POST:", "POSTS", "host::", "po\u017ft", "pos\x00"} {
		require.False(t, resp.IsCrossProtocol([]byte(name)), name)
	}
}

func TestRedconGetsOnlyProvenFrames(t *testing.T) {
	// ReadNextCommand panics on lengths that it does not check, and takes a leading $ for another
	// protocol.
	lim := resp.DefaultLimits()
	for _, stream := range []string{"*1\r\n$-2\r\n", fmt.Sprintf("*1\r\n$%d\r\n", math.MaxInt)} {
		require.Panics(t, func() { _, _, _, _, _ = redcon.ReadNextCommand([]byte(stream+"x"), nil) })
		requireSplit(t, lim, stream+"x", nil, resp.ErrBulkLength)
	}
	requireSplit(t, lim, "$4 PING\r\n", [][]string{{"$4", "PING"}}, "")

	// The guard passes a complete frame to redcon, unless its line ends are not CR LF, which Redis
	// accepts and redcon does not.
	for _, crlf := range []string{"\r\n", "\r\r", "\r$", "\rx", "\r\x00"} {
		stream := strings.ReplaceAll("*3~$4~ECHO~$0~~$12~hello\nworld!~", "~", crlf)
		requireSplit(t, lim, stream, [][]string{{"ECHO", "", "hello\nworld!"}}, "")
	}
	for _, tail := range []string{"\r\n", "xx", "\n\r", "$4"} {
		requireSplit(t, lim, fmt.Sprintf("*2\r\n$4\r\nECHO%s$1\r\na%sPING\r\n", tail, tail), [][]string{{"ECHO", "a"}, {"PING"}}, "")
	}
}

func TestGuardIsSmall(t *testing.T) {
	// redcon keeps three buffers of 4 KiB for every connection.
	require.LessOrEqual(t, unsafe.Sizeof(resp.Guard{}), uintptr(48))
}
