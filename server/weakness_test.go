package server_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport"
)

// weaknesses lists what redcon's own server gets wrong, each with the test that shows that
// this server does not. The last column says why a row has no test, or needs no more.
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
	{"a pipeline out of step grows the buffer", TestMisalignedPipelineTakesNoMemory, ""},
	{"one large command keeps its memory", TestLargeCommandsReleaseTheirMemory, ""},
	{"all replies of a batch pile up", TestUnreadRepliesStopThePipeline, ""},
	{"readers that never read are kept", TestClientsThatNeverReadAreClosed, ""},
	{"one deadline for everything, fixed at accept", TestIdleAndUnfinishedCommandsHaveDeadlines, ""},
	{"accept spins when descriptors run out", TestAcceptDoesNotSpinWithoutDescriptors, ""},
	{"a TLS handshake on the accepting goroutine", TestHalfHandshakesHoldNobodyUp, ""},
	{"a TLS handshake without a deadline", nil, "the same test waits until all of them are closed"},
	{"commands after QUIT run", TestCommandsAfterQuitDoNotRun, ""},
	{"good commands before a bad one are lost", TestCommandsBeforeAProtocolErrorAreAnswered, ""},
	{"empty requests are errors", TestEmptyRequestsAreIgnored, ""},
	{"closing runs under a lock of the server", TestConnectionsCloseWhileTheWorldIsStopped, "transports call Closed without a lock, and it never blocks"},
	{"stopping cuts live connections", TestReceivedCommandsAreAnsweredBeforeStop, ""},
	{"unknown names are repeated whole, HTTP is read on", TestHTTPRequestsAreCutOff, ""},
	{"the parser of single frames panics", TestOtherPrefixesAreInlineCommands, "package resp gives redcon only frames that its guard has proven, and tests that"},
	{"three buffers for every connection", TestIdleConnectionTakesLittleMemory, ""},
	{"RESP2 only, errors may forge replies", TestErrorsCannotForgeReplies, ""},
}

// TestEveryWeaknessHasATestOrAReason keeps the list whole: each weakness has a test of
// its own, or the reason why there is none.
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

// edgeLengths are the numbers at which parsers break.
var edgeLengths = []string{
	"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
	"18446744073709551615", "18446744073709551617", "18446744073709551620", "99999999999999999999",
	"2147483647", "2147483648", "4294967296", "3000000000", "1048577", "536870913",
	"", "-", "+1", " 1", "1 ", "01", "-0", "00", "0x1", "1e3", "-2", "\x00", "1\x00", "١",
}

// TestHugeLengthsEndOnlyTheirConnection sends lengths that overflow, of arguments and of
// commands. Each ends its own connection at most.
func TestHugeLengthsEndOnlyTheirConnection(t *testing.T) {
	for _, length := range edgeLengths {
		for _, packet := range []string{"*1\r\n$" + length + "\r\n", "*" + length + "\r\n", "*" + length + "\r\n$" + length + "\r\nx\r\n"} {
			feedAnything(t, packet)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		length := strconv.FormatInt(r.Int64()>>r.IntN(63)*int64(1-2*r.IntN(2)), 10) + strings.Repeat("9", r.IntN(3))
		feedAnything(t, "*"+strconv.Itoa(1+r.IntN(3))+"\r\n$"+length+"\r\n"+strings.Repeat("x", r.IntN(8))+"\r\n$1\r\n")
	}
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		witness := f.dial()
		for _, packet := range []string{"*1\r\n$9223372036854775807\r\n", "*1\r\n$18446744073709551620\r\n", "*1\r\n$-2\r\n", "*1\r\n$536870913\r\n"} {
			c := f.dial()
			c.send(packet)
			c.expect(badBulk)
			c.expectEnd()
			require.Equal(t, "+PONG\r\n", witness.do("PING"))
		}
	})
}

// feedAnything gives a fresh session a packet: whatever it makes of it, it does not
// panic, and it answers with at most one error.
func feedAnything(t *testing.T, packet string) {
	t.Helper()
	b := sharedBench(t)
	session, rejection := b.server.Engine().Open(quietPeer{})
	require.Empty(t, rejection)
	turn := session.Feed(b.worker, []byte(packet), b.out[:0])
	if turn.Next == transport.Close {
		require.Contains(t, string(turn.Whole()), "-ERR Protocol error: ", "%q", packet)
	}
	require.NotContains(t, string(turn.Whole()), "internal error", "%q", packet)
	session.Closed()
}

// TestAnnouncedArgumentsTakeNoMemory announces arguments. A count above the limit is
// refused at once. An allowed one takes no memory before its arguments come.
func TestAnnouncedArgumentsTakeNoMemory(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		for _, count := range []string{"9223372036854775807", "3000000000", "2147483648", "65537"} {
			c := f.dial()
			c.send("*" + count + "\r\n")
			c.expect(badMultibulk)
			c.expectEnd()
		}
		c := f.dial()
		c.send("*65536\r\n$4\r\nECHO\r\n$1")
		require.Equal(t, "+PONG\r\n", f.dial().do("PING"))
	})
	b := sharedBench(t)
	session, _ := b.server.Engine().Open(quietPeer{})
	head := []byte("*65536\r\n$4\r\nECHO\r\n$1")
	allocated := allocatedBy(func() {
		for range 1000 {
			session.Feed(b.worker, head, b.out[:0])
		}
	})
	require.Less(t, allocated, uint64(1<<20), "memory is taken as arguments come, not as they are announced")
}

// TestMalformedLengthsAreProtocolErrors sends lengths that Redis refuses.
func TestMalformedLengthsAreProtocolErrors(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		for _, count := range []string{"18446744073709551617", "+1", "01", "", " 1", "-", "1 ", "0x1", "4294967297"} {
			c := f.dial()
			c.send("*" + count + "\r\n$4\r\nPING\r\n")
			c.expect(badMultibulk)
			c.expectEnd()
		}
		for _, length := range []string{"18446744073709551620", "+4", "04", "", "-1", "-0", " 4"} {
			c := f.dial()
			c.send("*1\r\n$" + length + "\r\nPING\r\n")
			c.expect(badBulk)
			c.expectEnd()
		}
		c := f.dial()
		c.send("*1\r\n:4\r\nPING\r\n")
		c.expect("-ERR Protocol error: expected '$', got ':'\r\n")
		c.expectEnd()
	})
}

// TestCommandInManyPiecesTakesNoStack sends a command in 60,000 pieces. It costs no more
// than in one piece.
func TestCommandInManyPiecesTakesNoStack(t *testing.T) {
	if testing.Short() {
		t.Skip("60,000 packets take seconds under the race detector")
	}
	eachTransport(t, func(t *testing.T, kind string) {
		c := start(t, kind).dial()
		const size = 1_000_000
		raw := fmt.Sprintf("*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n", size, strings.Repeat("x", size))
		stacks := stackBytes()
		for i := 0; i < len(raw); i += 16 {
			c.send(raw[i:min(i+16, len(raw))])
		}
		require.Len(t, c.reply(), size+len("$1000000\r\n\r\n"))
		require.Less(t, stackBytes(), stacks+1<<20)
		for _, b := range []byte("*1\r\n$4\r\nPING\r\nPING\r\n") {
			c.send(string(b))
		}
		c.expect("+PONG\r\n", "+PONG\r\n")
	})
}

// TestInlineLineOfManyWordsTakesLittleMemory sends a line of 64 KiB with as many words as
// fit. It takes the memory of its slice headers and no more.
func TestInlineLineOfManyWordsTakesLittleMemory(t *testing.T) {
	b := newBench(t)
	line := []byte(strings.Repeat("a ", 32<<10-1) + "\r\n")
	require.Contains(t, string(b.feed(line)), "-ERR unknown command 'a'")
	allocated := uint64(math.MaxUint64)
	for range 5 { // others in this process allocate too: the least is the line's own
		allocated = min(allocated, allocatedBy(func() { b.feed(line) }))
	}
	require.Less(t, allocated, uint64(1<<20))
	eachTransport(t, func(t *testing.T, kind string) {
		c := start(t, kind).dial()
		c.send(strings.Repeat("a ", 32<<10-1) + "\r\nPING\r\n")
		require.Contains(t, c.reply(), "-ERR unknown command 'a'")
		c.expect("+PONG\r\n")
	})
}

// TestInlineLineWithoutEndIsRefused sends a line without an end. It is refused at the
// length at which Redis refuses it.
func TestInlineLineWithoutEndIsRefused(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		for _, size := range []int{64<<10 + 1, 512 << 10} {
			c := f.dial()
			go func() { _, _ = c.Write([]byte(strings.Repeat("x", size))) }() // cut short, as it should be
			c.expect("-ERR Protocol error: too big inline request\r\n")
			c.expectEnd()
		}
	})
}

// TestMisalignedPipelineTakesNoMemory sends 32 MiB of commands, none of which begins
// where a read begins. The server holds no more memory than at the start.
func TestMisalignedPipelineTakesNoMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 32 MiB")
	}
	eachTransport(t, func(t *testing.T, kind string) {
		c := start(t, kind).dial()
		packet := strings.Repeat("*1\r\n$4\r\nPING\r\n", 1<<10)
		packet = packet[5:] + packet[:5] // every write ends five bytes into a command
		const packets = 32 << 20 / (14 << 10)
		c.send("*1\r\n$")
		before := heapBytes()
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for range packets {
				if _, err := c.Write([]byte(packet)); err != nil {
					return
				}
			}
		}()
		for range packets << 10 {
			c.expect("+PONG\r\n")
		}
		<-sent
		require.Less(t, heapBytes(), before+2<<20)
	})
}

// TestLargeCommandsReleaseTheirMemory sends large commands over connections that stay
// open. The server releases the memory.
func TestLargeCommandsReleaseTheirMemory(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		before := heapBytes()
		large := strings.Repeat("x", 1<<20-64)
		for range 20 {
			conn := dial(t, "tcp", f.addr)
			conn.command("ECHO", large)
			require.Len(t, conn.reply(), len(bulk(large)))
			conn.r = nil
		}
		eventually(t, "the memory is back", func() bool { return heapBytes() < before+4<<20 })
		c := f.dial()
		c.send("*2\r\n$4\r\nECHO\r\n$536870913\r\n")
		c.expect(badBulk)
		c.expectEnd()
	})
}

// TestUnreadRepliesStopThePipeline does not read its replies. The commands behind them do
// not run, so that a small pipeline cannot fill the memory.
func TestUnreadRepliesStopThePipeline(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--write-timeout", "3600")
		c := f.dial()
		require.NoError(t, c.Conn.(*net.TCPConn).SetReadBuffer(64<<10))
		want := len(c.do("COMMAND", "DOCS"))
		before := heapBytes()
		const n = 200
		c.send(strings.Repeat("COMMAND DOCS\r\n", n))
		witness := f.dial()
		for range 200 {
			require.Equal(t, "+PONG\r\n", witness.do("PING"))
			require.LessOrEqual(t, f.Stats().Pending, int64(256<<10+64<<10+want))
		}
		eventually(t, "the kernel takes no more, and nothing piles up", func() bool {
			out := f.Stats().BytesOut
			return heapBytes() < before+2<<20 && f.Stats().BytesOut == out && f.Stats().Pending > 0
		})
		require.Less(t, f.Stats().BytesOut, int64(n*want), "all fitted into the kernel: the test shows nothing")
		for range n {
			require.Len(t, c.reply(), want)
		}
	})
}

// TestClientsThatNeverReadAreClosed has clients that read nothing. After write-timeout
// they are closed and their replies are dropped.
func TestClientsThatNeverReadAreClosed(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--write-timeout", "1")
		witness := f.dial()
		before := heapBytes()
		conns := make([]net.Conn, 50)
		for i := range conns {
			c := f.dial()
			require.NoError(t, c.Conn.(*net.TCPConn).SetReadBuffer(4<<10))
			c.send(strings.Repeat("COMMAND DOCS\r\n", 400))
			conns[i] = c
		}
		eventually(t, "all are closed", func() bool { return witness.info("connected_clients") == "1" })
		eventually(t, "the memory is back", func() bool { return heapBytes() < before+4<<20 })
		runtime.KeepAlive(conns)
	})
}

// TestIdleAndUnfinishedCommandsHaveDeadlines has an idle client and one with an
// unfinished command. Each has a deadline of its own, and CONFIG SET changes it for open
// connections too.
func TestIdleAndUnfinishedCommandsHaveDeadlines(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		admin, idle, partial := f.dial(), f.dial(), f.dial()
		require.Equal(t, "+PONG\r\n", idle.do("PING"))
		partial.send("PING\r\n*2\r\n$4\r\nECHO\r\n$5\r\nhe")
		partial.expect("+PONG\r\n")

		f.police(29 * time.Second)
		partial.send("llo\r\n*1\r\n$4\r\nPI")
		partial.expect(bulk("hello"))
		f.police(29 * time.Second) // another command is unfinished now, since 29 s
		require.Equal(t, "+PONG\r\n", admin.do("PING"))
		f.police(time.Second)
		partial.expectEnd()

		require.Equal(t, "+OK\r\n", admin.do("CONFIG", "SET", "timeout", "60"))
		require.Equal(t, "+PONG\r\n", idle.do("PING"))
		f.police(59 * time.Second)
		require.Equal(t, "+PONG\r\n", admin.do("PING"))
		f.police(time.Second)
		idle.expectEnd()
		require.Equal(t, "+PONG\r\n", admin.do("PING"))
	})
}

// police moves the clock and has the server look at its clients.
func (f *fixture) police(d time.Duration) {
	f.clock.Advance(d)
	f.Engine().CloseOverdue(f.clock.Now())
}
