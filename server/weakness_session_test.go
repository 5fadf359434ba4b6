package server_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/freeport"
)

// TestAcceptDoesNotSpinWithoutDescriptors runs the server with 64 file descriptors. It
// refuses clients that it cannot serve, serves those that it has, and does not spin.
func TestAcceptDoesNotSpinWithoutDescriptors(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc and limits with ulimit")
	}
	eachTransport(t, func(t *testing.T, kind string) {
		addr, process := startLimited(t, kind, 64)
		witness := dial(t, "tcp", addr)
		require.Equal(t, "+PONG\r\n", witness.do("PING"))
		conns := make([]net.Conn, 0, 300)
		for range cap(conns) {
			c, err := net.DialTimeout("tcp", addr, patience)
			require.NoError(t, err)
			conns = append(conns, c)
		}
		before := cpuTicks(t, process.Pid)
		begun := time.Now()
		for time.Since(begun) < time.Second {
			require.Equal(t, "+PONG\r\n", witness.do("PING"))
			time.Sleep(20 * time.Millisecond) // the load is the witness's, not a spin of ours
		}
		used := time.Duration(cpuTicks(t, process.Pid)-before) * time.Second / 100
		require.Less(t, used, time.Since(begun)*2/5)
		for _, c := range conns {
			require.NoError(t, c.Close())
		}
		eventually(t, "there is room again", func() bool {
			c, err := net.Dial("tcp", addr)
			require.NoError(t, err)
			defer c.Close()
			require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
			_, _ = c.Write([]byte("PING\r\n")) // a refusal may have closed it already
			answer := make([]byte, 7)
			n, _ := c.Read(answer)
			return string(answer[:n]) == "+PONG\r\n"
		})
	})
}

// startLimited starts the program with as many file descriptors.
func startLimited(t *testing.T, kind string, files int) (addr string, process *os.Process) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "cellserver")
	out, err := exec.Command("go", "build", "-o", bin, "../cmd/cellserver").CombinedOutput()
	require.NoError(t, err, "%s", out)
	port := freeport.Choose()
	addr = net.JoinHostPort("127.0.0.1", port)
	cmd := exec.Command("sh", "-c", "ulimit -n "+strconv.Itoa(files)+`; exec "$0" "$@"`,
		bin, "--port", port, "--bind", "127.0.0.1", "--transport", kind, "--io-threads", "1")
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	eventually(t, "it listens", func() bool {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
	return addr, cmd.Process
}

// cpuTicks is what a process has used, in hundredths of a second.
func cpuTicks(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	require.NoError(t, err)
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')'):]))
	user, err := strconv.Atoi(fields[12])
	require.NoError(t, err)
	system, err := strconv.Atoi(fields[13])
	require.NoError(t, err)
	return user + system
}

// TestCommandsAfterQuitDoNotRun sends commands behind QUIT, and behind a CLIENT KILL of
// the same client. They do not run.
func TestCommandsAfterQuitDoNotRun(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		witness := f.dial()
		c := f.dial()
		c.send("QUIT\r\nCL.THROTTLE k 1 1 1\r\nPING\r\n")
		c.expect("+OK\r\n")
		c.expectEnd()
		c = f.dial()
		c.send("CLIENT KILL ID " + c.id() + " SKIPME no\r\nCL.THROTTLE k 1 1 1\r\nPING\r\n")
		c.expect(":1\r\n")
		c.expectEnd()
		require.Equal(t, ":0\r\n", witness.do("EXISTS", "k"))
	})
}

// TestCommandsBeforeAProtocolErrorAreAnswered sends complete commands before a protocol
// error. They are answered first.
func TestCommandsBeforeAProtocolErrorAreAnswered(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		for bad, want := range map[string]string{
			"*1\r\n$x\r\n":            badBulk,
			"*x\r\n":                  badMultibulk,
			"PING \"unbalanced\r\n":   "-ERR Protocol error: unbalanced quotes in request\r\n",
			"*1\r\n+OK\r\n":           "-ERR Protocol error: expected '$', got '+'\r\n",
			"*2\r\n$4\r\nPING\r\n$-1": "",
		} {
			c := f.dial()
			c.send("PING\r\n*1\r\n$4\r\nPING\r\n" + bad + "PING\r\n")
			c.expect("+PONG\r\n", "+PONG\r\n")
			if want != "" {
				c.expect(want)
				c.expectEnd()
			}
		}
	})
}

// TestEmptyRequestsAreIgnored sends requests without a command. They get no reply, and
// the next request is read afresh.
func TestEmptyRequestsAreIgnored(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		c := start(t, kind).dial()
		c.send("*0\r\nPING\r\n*-1\r\n*1\r\n$4\r\nPING\r\n*-10\r\n\r\n\n   \r\n*0\r\n*0\r\nPING\r\n")
		c.expect("+PONG\r\n", "+PONG\r\n", "+PONG\r\n")
		c.send("*0\r\n")
		c.send("*-2147483648\r\n*2\r\n$4\r\nEC")
		c.send("HO\r\n$1\r\nx\r\n")
		c.expect(bulk("x"))
	})
}

// TestConnectionsCloseWhileTheWorldIsStopped closes clients that watch keys while the
// world is stopped. They leave and make room for others.
func TestConnectionsCloseWhileTheWorldIsStopped(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--maxclients", "10")
		conns := make([]*client, 10)
		for i := range conns {
			conns[i] = f.dial()
			require.Equal(t, "+OK\r\n", conns[i].do("WATCH", "k"))
		}
		world := f.Keyspace().World()
		require.True(t, world.Stop(nil))
		for _, c := range conns {
			require.NoError(t, c.Close())
		}
		eventually(t, "all have left", func() bool { return f.Stats().Connections == 0 })
		var fresh *client
		eventually(t, "a new client is let in", func() bool {
			fresh = f.dial()
			fresh.send("PING\r\n")
			require.NoError(t, fresh.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
			_, err := fresh.r.ReadByte()
			var timeout net.Error
			return errors.As(err, &timeout) && timeout.Timeout() // parked, not refused
		})
		world.Start()
		require.NoError(t, fresh.SetReadDeadline(time.Now().Add(patience)))
		fresh.expect("+PONG\r\n")
		eventually(t, "nothing is watched", func() bool { return fresh.info("connected_clients") == "1" })
	})
}

// TestReceivedCommandsAreAnsweredBeforeStop stops the server while the world is stopped.
// Everything that was received before is answered first.
func TestReceivedCommandsAreAnsweredBeforeStop(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--shutdown-timeout", "60")
		const clients, depth = 20, 2000
		conns := make([]*client, clients)
		for i := range conns {
			conns[i] = f.dial()
		}
		world := f.Keyspace().World()
		require.True(t, world.Stop(nil))
		for _, c := range conns {
			c.send(strings.Repeat("PING\r\n", depth))
		}
		eventually(t, "all is received", func() bool { return f.Stats().BytesIn == clients*depth*6 })
		f.Stop()
		eventually(t, "nobody is accepted", func() bool {
			c, err := net.Dial("tcp", f.addr)
			if err == nil {
				_ = c.Close()
			}
			return err != nil
		})
		world.Start()
		for _, c := range conns {
			for range depth {
				c.expect("+PONG\r\n")
			}
			c.expectEnd()
		}
		f.end()
	})
}

// TestHTTPRequestsAreCutOff sends requests of a browser. The connection is closed before
// the body can be taken for commands. Unknown names are repeated in part only.
func TestHTTPRequestsAreCutOff(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		for _, request := range []string{
			"POST / HTTP/1.1\r\nHost: x\r\n\r\nCL.THROTTLE k 1 1 1\r\n",
			"Host: localhost\r\nCL.THROTTLE k 1 1 1\r\n",
			"post / HTTP/1.1\r\n\r\nCL.THROTTLE k 1 1 1\r\n",
			"*1\r\n$5\r\nHOST:\r\nCL.THROTTLE k 1 1 1\r\n",
		} {
			c := f.dial()
			c.send("PING\r\n" + request)
			c.expect("+PONG\r\n")
			c.expectEnd()
		}
		c := f.dial()
		c.send("GET / HTTP/1.1\r\nAccept: */*\r\nHost: x\r\nCL.THROTTLE k 1 1 1\r\n")
		c.expect("-ERR wrong number of arguments for 'get' command\r\n", "-ERR unknown command 'Accept:', with args beginning with: '*/*' \r\n")
		c.expectEnd()
		witness := f.dial()
		require.Equal(t, ":0\r\n", witness.do("EXISTS", "k"))
		long := strings.Repeat("n", 100_000)
		require.Equal(t, "-ERR unknown command '"+long[:128]+"', with args beginning with: '"+long[:128]+"' \r\n", witness.do(long, long, long))
		require.Equal(t, 5, strings.Count(f.log.String(), "speaks HTTP"))
	})
}

// TestOtherPrefixesAreInlineCommands sends what redcon's parser takes for other
// protocols, or panics on. It is read as Redis reads it.
func TestOtherPrefixesAreInlineCommands(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		c := f.dial()
		c.send("$4\r\nPING\r\n+OK\r\n:1\r\n")
		c.expect("-ERR unknown command '$4', with args beginning with: \r\n", "+PONG\r\n",
			"-ERR unknown command '+OK', with args beginning with: \r\n", "-ERR unknown command ':1', with args beginning with: \r\n")
		c.send("*1\r\n$-2\r\n")
		c.expect(badBulk)
		c.expectEnd()
	})
}

// TestIdleConnectionTakesLittleMemory measures an idle connection, including the client's
// end in this process.
func TestIdleConnectionTakesLittleMemory(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector changes what things cost")
	}
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		witness := f.dial()
		const n = 500
		before := int64(heapBytes() + stackBytes())
		conns := make([]net.Conn, n)
		for i := range conns {
			c, err := net.Dial("tcp", f.addr)
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close() })
			_, err = c.Write([]byte("PING\r\n"))
			require.NoError(t, err)
			answer := make([]byte, 7)
			_, err = c.Read(answer)
			require.NoError(t, err)
			conns[i] = c
		}
		require.Equal(t, strconv.Itoa(n+1), witness.info("connected_clients"))
		most := map[string]int64{"goroutine": 12 << 10, "epoll": 3 << 10}
		var each int64
		eventually(t, "stacks have shrunk", func() bool {
			each = (int64(heapBytes()+stackBytes()) - before) / n
			return each < most[kind]
		})
		t.Logf("%d bytes for an idle connection and its client", each)
		runtime.KeepAlive(conns)
	})
}

// TestErrorsCannotForgeReplies sends line ends in names. No error that repeats them reads
// as two replies. It also tests HELLO with both protocols.
func TestErrorsCannotForgeReplies(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		c := start(t, kind).dial()
		require.Equal(t, "-ERR unknown command 'a  +OK  b', with args beginning with: 'x  -y' \r\n", c.do("a\r\n+OK\r\nb", "x\r\n-y"))
		require.Equal(t, "-ERR unknown subcommand 'a  b'. Try CLIENT HELP.\r\n", c.do("CLIENT", "a\r\nb"))
		require.Equal(t, "-ERR Unknown option or number of arguments for CONFIG SET - 'a  b'\r\n", c.do("CONFIG", "SET", "a\r\nb", "1"))
		require.Contains(t, c.do("HELLO", "2"), "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n")
		require.Equal(t, "$-1\r\n", c.do("GET", "k"))
		require.Contains(t, c.do("HELLO", "3"), "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n")
		require.Equal(t, "_\r\n", c.do("GET", "k"))
		require.Equal(t, "-NOPROTO unsupported protocol version\r\n", c.do("HELLO", "4"))
		require.Equal(t, "_\r\n", c.do("GET", "k"), "a refused HELLO changes nothing")
	})
}
