package session_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestCommandsAfterQuitDoNotRun sends commands after QUIT, and after a CLIENT KILL of the same
// client. They do not run.
func TestCommandsAfterQuitDoNotRun(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		witness := f.Dial()
		c := f.Dial()
		c.Send("QUIT\r\nCL.THROTTLE k 1 1 1\r\nPING\r\n")
		c.Expect("+OK\r\n")
		c.ExpectEnd()
		c = f.Dial()
		c.Send("CLIENT KILL ID " + c.ID() + " SKIPME no\r\nCL.THROTTLE k 1 1 1\r\nPING\r\n")
		c.Expect(":1\r\n")
		c.ExpectEnd()
		require.Equal(t, ":0\r\n", witness.Do("EXISTS", "k"))
	})
}

// TestCommandsBeforeAProtocolErrorAreAnswered sends complete commands before a protocol
// error. They are answered first.
func TestCommandsBeforeAProtocolErrorAreAnswered(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		for bad, want := range map[string]string{
			"*1\r\n$x\r\n":            badBulk,
			"*x\r\n":                  badMultibulk,
			"PING \"unbalanced\r\n":   "-ERR Protocol error: unbalanced quotes in request\r\n",
			"*1\r\n+OK\r\n":           "-ERR Protocol error: expected '$', got '+'\r\n",
			"*2\r\n$4\r\nPING\r\n$-1": "",
		} {
			c := f.Dial()
			c.Send("PING\r\n*1\r\n$4\r\nPING\r\n" + bad + "PING\r\n")
			c.Expect("+PONG\r\n", "+PONG\r\n")
			if want != "" {
				c.Expect(want)
				c.ExpectEnd()
			}
		}
	})
}

// TestEmptyRequestsAreIgnored sends requests without a command. They get no reply, and
// the next request is read afresh.
func TestEmptyRequestsAreIgnored(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		c.Send("*0\r\nPING\r\n*-1\r\n*1\r\n$4\r\nPING\r\n*-10\r\n\r\n\n   \r\n*0\r\n*0\r\nPING\r\n")
		c.Expect("+PONG\r\n", "+PONG\r\n", "+PONG\r\n")
		c.Send("*0\r\n")
		c.Send("*-2147483648\r\n*2\r\n$4\r\nEC")
		c.Send("HO\r\n$1\r\nx\r\n")
		c.Expect(inproc.Bulk("x"))
	})
}

// TestConnectionsCloseWhileTheWorldIsStopped closes clients that watch keys while the
// world is stopped. They leave and make room for others.
func TestConnectionsCloseWhileTheWorldIsStopped(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--maxclients", "10")
		conns := make([]*inproc.Client, 10)
		for i := range conns {
			conns[i] = f.Dial()
			require.Equal(t, "+OK\r\n", conns[i].Do("WATCH", "k"))
		}
		world := f.Keyspace().World()
		require.True(t, world.Stop(nil))
		for _, c := range conns {
			require.NoError(t, c.Close())
		}
		w.Settle()
		open, _ := f.Engine().CountClients()
		require.Zero(t, open, "all have left")
		fresh := f.Dial()
		fresh.Send("PING\r\n")
		fresh.Silent() // parked, not refused
		world.Start()
		fresh.Expect("+PONG\r\n")
		require.Equal(t, "1", fresh.Info("connected_clients"), "nothing is watched")
	})
}

// TestHTTPRequestsAreCutOff sends requests of a browser. The connection is closed before
// the body can be taken for commands. Unknown names are repeated in part only.
func TestHTTPRequestsAreCutOff(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		for _, request := range []string{
			"POST / HTTP/1.1\r\nHost: x\r\n\r\nCL.THROTTLE k 1 1 1\r\n",
			"Host: localhost\r\nCL.THROTTLE k 1 1 1\r\n",
			"post / HTTP/1.1\r\n\r\nCL.THROTTLE k 1 1 1\r\n",
			"*1\r\n$5\r\nHOST:\r\nCL.THROTTLE k 1 1 1\r\n",
		} {
			c := f.Dial()
			c.Send("PING\r\n" + request)
			c.Expect("+PONG\r\n")
			c.ExpectEnd()
		}
		c := f.Dial()
		c.Send("GET / HTTP/1.1\r\nAccept: */*\r\nHost: x\r\nCL.THROTTLE k 1 1 1\r\n")
		c.Expect("-ERR wrong number of arguments for 'get' command\r\n", "-ERR unknown command 'Accept:', with args beginning with: '*/*' \r\n")
		c.ExpectEnd()
		witness := f.Dial()
		require.Equal(t, ":0\r\n", witness.Do("EXISTS", "k"))
		long := strings.Repeat("n", 100_000)
		require.Equal(t, "-ERR unknown command '"+long[:128]+"', with args beginning with: '"+long[:128]+"' \r\n", witness.Do(long, long, long))
		require.Equal(t, 5, strings.Count(f.Log.String(), "speaks HTTP"))
	})
}

// TestOtherPrefixesAreInlineCommands sends input that redcon's parser takes for other protocols, or
// panics on. It is parsed as Redis parses it.
func TestOtherPrefixesAreInlineCommands(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		c := f.Dial()
		c.Send("$4\r\nPING\r\n+OK\r\n:1\r\n")
		c.Expect("-ERR unknown command '$4', with args beginning with: \r\n", "+PONG\r\n",
			"-ERR unknown command '+OK', with args beginning with: \r\n", "-ERR unknown command ':1', with args beginning with: \r\n")
		c.Send("*1\r\n$-2\r\n")
		c.Expect(badBulk)
		c.ExpectEnd()
	})
}

// TestErrorsCannotForgeReplies sends names with line ends. An error that repeats them must not read
// as two replies. It also tests HELLO with both protocols.
func TestErrorsCannotForgeReplies(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		require.Equal(t, "-ERR unknown command 'a  +OK  b', with args beginning with: 'x  -y' \r\n", c.Do("a\r\n+OK\r\nb", "x\r\n-y"))
		require.Equal(t, "-ERR unknown subcommand 'a  b'. Try CLIENT HELP.\r\n", c.Do("CLIENT", "a\r\nb"))
		require.Equal(t, "-ERR Unknown option or number of arguments for CONFIG SET - 'a  b'\r\n", c.Do("CONFIG", "SET", "a\r\nb", "1"))
		require.Contains(t, c.Do("HELLO", "2"), "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n")
		require.Equal(t, "$-1\r\n", c.Do("GET", "k"))
		require.Contains(t, c.Do("HELLO", "3"), "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n")
		require.Equal(t, "_\r\n", c.Do("GET", "k"))
		require.Equal(t, "-NOPROTO unsupported protocol version\r\n", c.Do("HELLO", "4"))
		require.Equal(t, "_\r\n", c.Do("GET", "k"), "a refused HELLO changes nothing")
	})
}
