package session_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/transport"
)

// weaknesses lists the faults of redcon's own server, each with the test which shows that this
// server does not have it. closed gives the reason for a row without a test, or why the row needs
// no more.
var weaknesses = []struct {
	fault  string
	test   func(*testing.T)
	closed string
}{
	{"a length that overflows ends the process", TestHugeLengthsEndOnlyTheirConnection, ""},
	{"a count that is never sent pins a core", TestAnnouncedArgumentsTakeNoMemory, ""},
	{"lengths wrap around, have signs and zeros", TestMalformedLengthsAreProtocolErrors, ""},
	{"a dripped command grows the stack", TestCommandInManyPiecesTakesNoStack, "no code recurses per read"},
	{"inline words cost the square of their line", TestInlineLineOfManyWordsTakesLittleMemory, ""},
	{"an inline line has no bound", TestInlineLineWithoutEndIsRefused, ""},
	{"a pipeline out of step grows the buffer", nil, "package transport has TestMisalignedPipelineTakesNoMemory"},
	{"one large command keeps its memory", nil, "package transport has TestLargeCommandsReleaseTheirMemory"},
	{"all replies of a batch pile up", nil, "package transport has TestUnreadRepliesStopThePipeline"},
	{"readers that never read are kept", nil, "package transport has TestClientsThatNeverReadAreClosed"},
	{"one deadline for everything, fixed at accept", TestIdleAndUnfinishedCommandsHaveDeadlines, ""},
	{"accept spins when descriptors run out", nil, "package transport has TestFailedAcceptsWait"},
	{"a TLS handshake on the accepting goroutine", nil, "package transport has TestHalfHandshakesHoldNobodyUp"},
	{"a TLS handshake without a deadline", nil, "the same test waits until all of them are closed"},
	{"commands after QUIT run", TestCommandsAfterQuitDoNotRun, ""},
	{"good commands before a bad one are lost", TestCommandsBeforeAProtocolErrorAreAnswered, ""},
	{"empty requests are errors", TestEmptyRequestsAreIgnored, ""},
	{"closing runs under a lock of the server", TestConnectionsCloseWhileTheWorldIsStopped, "transports call Closed without a lock, and it never blocks"},
	{"stopping cuts live connections", nil, "package transport has TestReceivedCommandsAreAnsweredBeforeStop"},
	{"unknown names are repeated whole, HTTP is read on", TestHTTPRequestsAreCutOff, ""},
	{"the parser of single frames panics", TestOtherPrefixesAreInlineCommands, "package resp gives redcon only frames that its guard has proven, and tests that"},
	{"three buffers for every connection", nil, "package transport has TestIdleConnectionTakesLittleMemory"},
	{"RESP2 only, errors may forge replies", TestErrorsCannotForgeReplies, ""},
}

// TestEveryWeaknessHasATestOrAReason keeps the list complete: each weakness has its own test, or a
// reason for having none.
func TestEveryWeaknessHasATestOrAReason(t *testing.T) {
	require.Len(t, weaknesses, 23)
	seen := map[uintptr]bool{}
	for _, w := range weaknesses {
		if w.test == nil {
			require.NotEmpty(t, w.closed, w.fault)
			continue
		}
		test := reflect.ValueOf(w.test).Pointer()
		require.False(t, seen[test], w.fault)
		seen[test] = true
	}
}

const (
	badMultibulk = "-ERR Protocol error: invalid multibulk length\r\n"
	badBulk      = "-ERR Protocol error: invalid bulk length\r\n"
)

// edgeLengths are numbers at which parsers fail.
var edgeLengths = []string{
	"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
	"18446744073709551615", "18446744073709551617", "18446744073709551620", "99999999999999999999",
	"2147483647", "2147483648", "4294967296", "3000000000", "1048577", "536870913",
	"", "-", "+1", " 1", "1 ", "01", "-0", "00", "0x1", "1e3", "-2", "\x00", "1\x00", "١",
}

// TestHugeLengthsEndOnlyTheirConnection sends lengths that overflow, of arguments and of commands.
// Each closes at most its own connection.
func TestHugeLengthsEndOnlyTheirConnection(t *testing.T) {
	s := inproc.Open(t).Server()
	worker := s.Engine().NewWorker()
	for _, length := range edgeLengths {
		for _, packet := range []string{"*1\r\n$" + length + "\r\n", "*" + length + "\r\n", "*" + length + "\r\n$" + length + "\r\nx\r\n"} {
			feedAnything(t, s, worker, packet)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		length := strconv.FormatInt(r.Int64()>>r.IntN(63)*int64(1-2*r.IntN(2)), 10) + strings.Repeat("9", r.IntN(3))
		feedAnything(t, s, worker, "*"+strconv.Itoa(1+r.IntN(3))+"\r\n$"+length+"\r\n"+strings.Repeat("x", r.IntN(8))+"\r\n$1\r\n")
	}
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		witness := f.Dial()
		for _, packet := range []string{"*1\r\n$9223372036854775807\r\n", "*1\r\n$18446744073709551620\r\n", "*1\r\n$-2\r\n", "*1\r\n$536870913\r\n"} {
			c := f.Dial()
			c.Send(packet)
			c.Expect(badBulk)
			c.ExpectEnd()
			require.Equal(t, "+PONG\r\n", witness.Do("PING"))
		}
	})
}

// feedAnything feeds a packet to a new session, and requires that it does not panic and replies
// with at most one error.
func feedAnything(t *testing.T, s *inproc.Server, worker transport.Worker, packet string) {
	t.Helper()
	session, rejection := s.Engine().Open(inproc.NewPeer())
	require.Empty(t, rejection)
	turn := session.Feed(worker, []byte(packet), nil)
	if turn.Next == transport.Close {
		require.Contains(t, string(turn.Whole()), "-ERR Protocol error: ", "%q", packet)
	}
	require.NotContains(t, string(turn.Whole()), "internal error", "%q", packet)
	session.Closed()
}

// TestAnnouncedArgumentsTakeNoMemory announces arguments. A count above the limit is refused at
// once. A permitted count takes no memory before its arguments arrive.
func TestAnnouncedArgumentsTakeNoMemory(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		for _, count := range []string{"9223372036854775807", "3000000000", "2147483648", "65537"} {
			c := f.Dial()
			c.Send("*" + count + "\r\n")
			c.Expect(badMultibulk)
			c.ExpectEnd()
		}
		c := f.Dial()
		c.Send("*65536\r\n$4\r\nECHO\r\n$1")
		require.Equal(t, "+PONG\r\n", f.Dial().Do("PING"))
	})
	s := inproc.Open(t)
	var out []byte
	head := []byte("*65536\r\n$4\r\nECHO\r\n$1")
	allocated := inproc.AllocatedBy(func() {
		for range 1000 {
			out = s.Turn(head, out[:0]).Out
		}
	})
	require.Less(t, allocated, uint64(1<<20), "memory is taken as arguments come, not as they are announced")
}

// TestMalformedLengthsAreProtocolErrors sends lengths that Redis refuses.
func TestMalformedLengthsAreProtocolErrors(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		for _, count := range []string{"18446744073709551617", "+1", "01", "", " 1", "-", "1 ", "0x1", "4294967297"} {
			c := f.Dial()
			c.Send("*" + count + "\r\n$4\r\nPING\r\n")
			c.Expect(badMultibulk)
			c.ExpectEnd()
		}
		for _, length := range []string{"18446744073709551620", "+4", "04", "", "-1", "-0", " 4"} {
			c := f.Dial()
			c.Send("*1\r\n$" + length + "\r\nPING\r\n")
			c.Expect(badBulk)
			c.ExpectEnd()
		}
		c := f.Dial()
		c.Send("*1\r\n:4\r\nPING\r\n")
		c.Expect("-ERR Protocol error: expected '$', got ':'\r\n")
		c.ExpectEnd()
	})
}

// stackBytes returns the memory of all stacks of this process.
func stackBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.StackInuse
}

// TestCommandInManyPiecesTakesNoStack sends a command in 19,000 pieces. It needs no more stack than
// in one piece.
func TestCommandInManyPiecesTakesNoStack(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		const size = 300_000
		raw := fmt.Sprintf("*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n", size, strings.Repeat("x", size))
		stacks := stackBytes()
		for i := 0; i < len(raw); i += 16 {
			c.Send(raw[i:min(i+16, len(raw))])
		}
		require.Len(t, c.Reply(), size+len("$300000\r\n\r\n"))
		require.Less(t, stackBytes(), stacks+1<<20)
		for _, b := range []byte("*1\r\n$4\r\nPING\r\nPING\r\n") {
			c.Send(string(b))
		}
		c.Expect("+PONG\r\n", "+PONG\r\n")
	})
}

// TestInlineLineOfManyWordsTakesLittleMemory sends a line of 64 KiB with as many words as
// fit. It takes the memory of its slice headers and no more.
func TestInlineLineOfManyWordsTakesLittleMemory(t *testing.T) {
	s := inproc.Open(t)
	line := []byte(strings.Repeat("a ", 32<<10-1) + "\r\n")
	require.Contains(t, string(s.Packet(line)), "-ERR unknown command 'a'")
	allocated := uint64(math.MaxUint64)
	for range 5 { // other goroutines allocate, too: the minimum is the line's own
		allocated = min(allocated, inproc.AllocatedBy(func() { s.Packet(line) }))
	}
	require.Less(t, allocated, uint64(1<<20))
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		c.Send(strings.Repeat("a ", 32<<10-1) + "\r\nPING\r\n")
		require.Contains(t, c.Reply(), "-ERR unknown command 'a'")
		c.Expect("+PONG\r\n")
	})
}

// TestInlineLineWithoutEndIsRefused sends a line without an end. It is refused at the
// length at which Redis refuses it.
func TestInlineLineWithoutEndIsRefused(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		for _, size := range []int{64<<10 + 1, 512 << 10} {
			c := f.Dial()
			go func() { _, _ = c.Write([]byte(strings.Repeat("x", size))) }() // the write fails when the connection is closed
			c.Expect("-ERR Protocol error: too big inline request\r\n")
			c.ExpectEnd()
		}
	})
}

// TestIdleAndUnfinishedCommandsHaveDeadlines has an idle client and one with an incomplete command.
// Each has its own deadline, and CONFIG SET changes it for open connections, too.
func TestIdleAndUnfinishedCommandsHaveDeadlines(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		admin, idle, partial := f.Dial(), f.Dial(), f.Dial()
		require.Equal(t, "+PONG\r\n", idle.Do("PING"))
		partial.Send("PING\r\n*2\r\n$4\r\nECHO\r\n$5\r\nhe")
		partial.Expect("+PONG\r\n")

		w.Advance(29 * time.Second)
		partial.Send("llo\r\n*1\r\n$4\r\nPI")
		partial.Expect(inproc.Bulk("hello"))
		w.Advance(29 * time.Second) // the incomplete command is another one now, since 29 s
		partial.Silent()
		w.Advance(2 * time.Second)
		partial.ExpectEnd()

		require.Equal(t, "+OK\r\n", admin.Do("CONFIG", "SET", "timeout", "60"))
		require.Equal(t, "+PONG\r\n", idle.Do("PING"))
		w.Advance(59 * time.Second)
		idle.Silent()
		require.Equal(t, "+PONG\r\n", admin.Do("PING"))
		w.Advance(2 * time.Second)
		idle.ExpectEnd()
		require.Equal(t, "+PONG\r\n", admin.Do("PING"))
	})
}
