package transport_test

import (
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

const pong = "+PONG\r\n"

// TestSilentRefusedClientsDelayNobody refuses clients that neither send nor read. Other clients are
// served meanwhile.
func TestSilentRefusedClientsDelayNobody(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		c := e.dial()
		require.Equal(t, pong, c.Do("PING"))
		limits := env.DefaultLimits()
		limits.MaxClients = 1
		e.SetLimits(limits)
		for range 600 {
			e.dial()
		}
		for range 100 {
			require.Equal(t, pong, c.Do("PING"))
		}
	})
}

// TestSlowReadersTakeLittleAndDelayNobody has fifty clients that request large replies and do not
// read them. They take little memory, and other clients are served.
func TestSlowReadersTakeLittleAndDelayNobody(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		witness := e.dial()
		one := len(witness.Do("COMMAND", "DOCS"))
		before := heap()
		const readers = 50
		conns := make([]*inproc.Client, readers)
		for i := range conns {
			conns[i] = e.dial()
			require.NoError(t, conns[i].Conn.(*net.TCPConn).SetReadBuffer(16<<10))
			conns[i].Send(strings.Repeat("COMMAND DOCS\r\n", 1000))
		}
		for range 100 {
			require.Equal(t, pong, witness.Do("PING"))
			require.LessOrEqual(t, e.tr.Stats().Pending, int64(readers*(256<<10+64<<10+one)))
		}
		eventually(t, "all are stuck", func() bool {
			e.pass(0)
			out := e.tr.Stats().BytesOut
			held := heap()
			e.pass(0)
			return held < before+50<<20 && e.tr.Stats().BytesOut == out
		})
		require.Less(t, e.tr.Stats().BytesOut, int64(readers*1000*one), "somebody read after all")
		_, output := e.LargestBuffers()
		require.Positive(t, output)
		runtime.KeepAlive(conns)
	})
}

// TestLongPipelineDelaysNobody: while one client keeps a pipeline of 10,000 commands full, another
// client gets its replies.
func TestLongPipelineDelaysNobody(t *testing.T) { eachEngine(t, pingBesidePipeline) }

// TestLongPipelineDelaysNobodyOverTLS is the same over TLS, where one record may contain many
// commands.
func TestLongPipelineDelaysNobodyOverTLS(t *testing.T) {
	everyTLS(t, func(t *testing.T, f transporttest.Factory) { pingBesidePipeline(t, serve(t, f)) })
}

// pingBesidePipeline lets one client keep a pipeline full while another sends PING.
func pingBesidePipeline(t *testing.T, e *engine) {
	greedy := e.dial()
	batch := strings.Repeat("*1\r\n$4\r\nPING\r\n", 10_000)
	var stop atomic.Bool
	var answered atomic.Int64 // bytes
	var both sync.WaitGroup
	var sent int64
	both.Go(func() {
		for ; !stop.Load(); sent++ {
			if _, err := io.WriteString(greedy.Conn, batch); err != nil {
				break
			}
		}
		_ = greedy.Conn.(interface{ CloseWrite() error }).CloseWrite() // ends the other half
	})
	both.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := greedy.Read(buf)
			answered.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	other := e.dial()
	turns := 2 * 1024 * int64(len(pong)) // the replies of two batches
	eventually(t, "the pipeline flows", func() bool { return answered.Load() > turns })
	// Both make progress: the pipeline gets the replies of ten batches while the other client is
	// served.
	goal, pings := answered.Load()+5*turns, 0
	for pings < 200 || answered.Load() < goal {
		require.Equal(t, pong, other.Do("PING"))
		pings++
		require.Less(t, pings, 1_000_000, "the pipeline stands still")
	}
	stop.Store(true)
	both.Wait()
	require.Equal(t, sent*10_000*int64(len(pong)), answered.Load())
}

// TestMisalignedPipelineTakesNoMemory sends 8 MiB of commands, none of which begins where a read
// begins. The server holds no more memory than at the start.
func TestMisalignedPipelineTakesNoMemory(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		c := e.dial()
		packet := strings.Repeat("*1\r\n$4\r\nPING\r\n", 1<<10)
		packet = packet[5:] + packet[:5] // every write ends five bytes into a command
		const packets = 8 << 20 / (14 << 10)
		c.Send("*1\r\n$")
		before := heap()
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for range packets {
				if _, err := io.WriteString(c.Conn, packet); err != nil {
					return
				}
			}
		}()
		for range packets << 10 {
			text, err := c.R.ReadSlice('\n')
			require.NoError(t, err)
			if string(text) != pong {
				require.Equal(t, pong, string(text))
			}
		}
		<-sent
		require.Less(t, heap(), before+2<<20)
	})
}

// TestLargeCommandsReleaseTheirMemory sends large commands over connections that stay open. The
// server releases the memory.
func TestLargeCommandsReleaseTheirMemory(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		before := heap()
		large := strings.Repeat("x", 1<<20-64)
		for range 20 {
			c := e.dial()
			c.Command("ECHO", large)
			require.Len(t, c.Reply(), len(inproc.Bulk(large)))
			c.R = nil
		}
		eventually(t, "the memory is back", func() bool {
			e.pass(e.lim.WriteTimeout)
			return heap() < before+4<<20
		})
		c := e.dial()
		c.Send("*2\r\n$4\r\nECHO\r\n$536870913\r\n")
		c.Expect("-ERR Protocol error: invalid bulk length\r\n")
		c.ExpectEnd()
	})
}

// TestUnreadRepliesStopThePipeline does not read its replies. Later commands of the pipeline do not
// run, so that a short pipeline cannot fill the memory.
func TestUnreadRepliesStopThePipeline(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		c := e.dial()
		require.NoError(t, c.Conn.(*net.TCPConn).SetReadBuffer(64<<10))
		want := len(c.Do("COMMAND", "DOCS"))
		before := heap()
		const n = 200
		c.Send(strings.Repeat("COMMAND DOCS\r\n", n))
		witness := e.dial()
		for range 200 {
			require.Equal(t, pong, witness.Do("PING"))
			require.LessOrEqual(t, e.tr.Stats().Pending, int64(256<<10+64<<10+want))
		}
		eventually(t, "the kernel takes no more, and nothing piles up", func() bool {
			e.pass(0)
			out := e.tr.Stats().BytesOut
			held := heap()
			e.pass(0)
			return held < before+2<<20 && e.tr.Stats().BytesOut == out && e.tr.Stats().Pending > 0
		})
		require.Less(t, e.tr.Stats().BytesOut, int64(n*want), "all fitted into the kernel: the test shows nothing")
		for range n {
			require.Len(t, c.Reply(), want)
		}
	})
}

// TestClientsThatNeverReadAreClosed: clients that read nothing are closed after write-timeout, and
// their replies are dropped.
func TestClientsThatNeverReadAreClosed(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		witness := e.dial()
		require.Equal(t, pong, witness.Do("PING"))
		before := heap()
		const readers = 50
		conns := make([]*inproc.Client, readers)
		for i := range conns {
			conns[i] = e.dial()
			require.NoError(t, conns[i].Conn.(*net.TCPConn).SetReadBuffer(4<<10))
			conns[i].Send(strings.Repeat("COMMAND DOCS\r\n", 400))
		}
		eventually(t, "all are closed", func() bool {
			e.pass(e.lim.WriteTimeout)
			return e.tr.Stats().SlowClosed == readers
		})
		eventually(t, "nobody else is there", func() bool { return witness.Info("connected_clients") == "1" })
		eventually(t, "the memory is back", func() bool { return heap() < before+4<<20 })
		runtime.KeepAlive(conns)
	})
}

// TestReceivedCommandsAreAnsweredBeforeStop stops the server while the world is stopped.
// Everything that was received before is answered first.
func TestReceivedCommandsAreAnsweredBeforeStop(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		const clients, depth = 20, 2000
		conns := make([]*inproc.Client, clients)
		for i := range conns {
			conns[i] = e.dial()
		}
		world := e.ks.World()
		require.True(t, world.Stop(nil))
		for _, c := range conns {
			c.Send(strings.Repeat("PING\r\n", depth))
		}
		eventually(t, "all is received", func() bool { return e.tr.Stats().BytesIn == clients*depth*6 })
		stopped := e.stop()
		eventually(t, "nobody is accepted", func() bool {
			c, err := net.Dial("tcp", e.addr.String())
			if err == nil {
				_ = c.Close()
			}
			return err != nil
		})
		world.Start()
		for _, c := range conns {
			for range depth {
				c.Expect(pong)
			}
			c.ExpectEnd()
		}
		require.NoError(t, <-stopped)
	})
}

// TestIdleConnectionTakesLittleMemory measures an idle connection with its session, including
// the client's end in this process.
func TestIdleConnectionTakesLittleMemory(t *testing.T) {
	if effort.RaceDetector {
		t.Skip("the race detector changes what things cost")
	}
	eachEngine(t, func(t *testing.T, e *engine) {
		witness := e.dial()
		require.Equal(t, pong, witness.Do("PING"))
		const n = 500
		before := heap() + stacks()
		conns := make([]net.Conn, n)
		for i := range conns {
			c, err := net.Dial("tcp", e.addr.String())
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close() })
			_, err = c.Write([]byte("PING\r\n"))
			require.NoError(t, err)
			_, err = io.ReadFull(c, make([]byte, len(pong)))
			require.NoError(t, err)
			conns[i] = c
		}
		most := int64(12 << 10)
		if strings.HasSuffix(t.Name(), "epoll") {
			most = 3 << 10
		}
		each := int64(0)
		eventually(t, "stacks have shrunk", func() bool {
			each = (heap() + stacks() - before) / n
			return each < most
		})
		t.Logf("%d bytes for an idle connection and its client", each)
		runtime.KeepAlive(conns)
	})
}
