package server_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/server"
)

const (
	noAuth    = "-NOAUTH Authentication required.\r\n"
	wrongPass = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
)

// TestAuthTexts: every way to authenticate and to fail, in Redis' words.
func TestAuthTexts(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		open := start(t, kind).dial()
		require.Equal(t, "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?\r\n", open.do("AUTH", "x"))
		require.Equal(t, "+OK\r\n", open.do("AUTH", "default", "anything"))
		require.Equal(t, wrongPass, open.do("AUTH", "nobody", "anything"))
		require.Equal(t, "-ERR wrong number of arguments for 'auth' command\r\n", open.do("AUTH"))
		require.Equal(t, "-ERR syntax error\r\n", open.do("AUTH", "a", "b", "c"))

		c := start(t, kind, "--requirepass", "sesame").dial()
		require.Equal(t, noAuth, c.do("CL.THROTTLE", "k", "1", "1", "1"))
		require.Equal(t, noAuth, c.do("MULTI"))
		require.Equal(t, "-ERR unknown command 'NOSUCH', with args beginning with: \r\n", c.do("NOSUCH"))
		require.Equal(t, "-ERR wrong number of arguments for 'get' command\r\n", c.do("GET"))
		require.Contains(t, c.do("HELLO", "3"), "-NOAUTH HELLO must be called with the client already authenticated")
		require.Contains(t, c.do("HELLO"), "-NOAUTH HELLO")
		require.Equal(t, "-NOPROTO unsupported protocol version\r\n", c.do("HELLO", "4", "AUTH", "default", "sesame"))
		require.Equal(t, wrongPass, c.do("HELLO", "3", "AUTH", "default", "no"))
		require.Equal(t, wrongPass, c.do("AUTH", "other", "sesame"))
		require.Equal(t, wrongPass, c.do("AUTH", ""))
		require.Equal(t, noAuth, c.do("PING"))
		require.Contains(t, c.do("HELLO", "3", "AUTH", "default", "sesame", "SETNAME", "me"), "%7\r\n")
		require.Equal(t, bulk("me"), c.do("CLIENT", "GETNAME"))
		require.Equal(t, wrongPass, c.do("AUTH", "no"), "a failure leaves the client as it was")
		require.Equal(t, "+PONG\r\n", c.do("PING"))
		require.Equal(t, "+OK\r\n", c.do("QUIT"))
	})
}

// TestFailedAuthIsLimited: ten failures of an address pass at once, and one a second;
// what comes beyond waits a second for its answer, while everybody else goes on.
func TestFailedAuthIsLimited(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--requirepass", "sesame")
		friend := f.dial()
		require.Equal(t, "+OK\r\n", friend.do("AUTH", "sesame"))
		for i := range 10 { // a new connection is no new chance
			c := f.dial()
			if i%2 == 0 {
				require.Equal(t, wrongPass, c.do("AUTH", "guess"))
			} else {
				require.Equal(t, wrongPass, c.do("HELLO", "3", "AUTH", "default", "guess"))
			}
		}
		late, right := f.dial(), f.dial()
		late.send("AUTH guess\r\nPING\r\n")
		eventually(t, "the attempt waits", func() bool { return f.clock.Timers() == 1 })
		right.send("AUTH sesame\r\nPING\r\n")
		eventually(t, "the right password waits too", func() bool { return f.clock.Timers() == 2 })
		for range 100 {
			require.Equal(t, five(0, 1000, 999, -1, 1), friend.do("CL.THROTTLE", "k", "999", "1000", "1", "1")[:len(five(0, 1000, 999, -1, 1))])
			require.Equal(t, ":1\r\n", friend.do("DEL", "k"))
		}
		require.Equal(t, "11", friend.info("acl_access_denied_auth"))
		f.clock.Advance(999 * time.Millisecond)
		require.Equal(t, 2, f.clock.Timers())
		f.clock.Advance(time.Millisecond)
		late.expect(wrongPass, noAuth)
		right.expect("+OK\r\n", "+PONG\r\n")

		// A second has forgiven one failure: that one is answered at once again.
		c := f.dial()
		require.Equal(t, wrongPass, c.do("AUTH", "guess"))
		c.send("AUTH guess\r\n")
		eventually(t, "the next one waits", func() bool { return f.clock.Timers() == 1 })
		f.clock.Advance(10 * time.Second)
		c.expect(wrongPass)
		for range 10 {
			require.Equal(t, wrongPass, c.do("AUTH", "guess"))
		}
	})
}

// TestPipelinedGuesses: a pipeline of guesses is answered in order, and nothing behind
// one that waits overtakes it.
func TestPipelinedGuesses(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--requirepass", "sesame")
		c := f.dial()
		c.send(strings.Repeat("AUTH guess\r\n", 13) + "AUTH sesame\r\nPING\r\n")
		for range 10 {
			c.expect(wrongPass)
		}
		eventually(t, "the eleventh waits", func() bool { return f.clock.Timers() == 1 })
		f.clock.Advance(time.Second)
		c.expect(wrongPass, wrongPass) // a second has forgiven one, which the twelfth uses up
		eventually(t, "the thirteenth waits", func() bool { return f.clock.Timers() == 1 })
		f.clock.Advance(time.Second)
		c.expect(wrongPass, "+OK\r\n", "+PONG\r\n")
	})
}

// TestClientMayLeaveDuringADelayedAuth: a client that goes away while its attempt waits
// leaves nothing behind, and one that is killed is not answered.
func TestClientMayLeaveDuringADelayedAuth(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--requirepass", "sesame")
		admin := f.dial()
		require.Equal(t, "+OK\r\n", admin.do("AUTH", "sesame"))
		c := f.dial()
		for range 10 {
			require.Equal(t, wrongPass, c.do("AUTH", "guess"))
		}
		victim := f.dial()
		victim.send("AUTH guess\r\n")
		eventually(t, "it waits", func() bool { return f.clock.Timers() == 1 })
		require.Equal(t, ":0\r\n", admin.do("CLIENT", "UNBLOCK", "3"), "that would be a way around the wait")
		require.Equal(t, ":1\r\n", admin.do("CLIENT", "KILL", "ID", "3"))
		victim.expectEnd()
		eventually(t, "its timer is stopped", func() bool { return f.clock.Timers() == 0 })
		c.send("AUTH guess\r\n")
		eventually(t, "it waits", func() bool { return f.clock.Timers() == 1 })
		require.NoError(t, c.Conn.(*net.TCPConn).SetLinger(0))
		require.NoError(t, c.Close())
		eventually(t, "its timer is stopped", func() bool { return f.clock.Timers() == 0 })
	})
}

// TestResetDeauthenticates: also for what follows in the same packet, and inside MULTI.
func TestResetDeauthenticates(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--requirepass", "sesame")
		c := f.dial()
		c.send("AUTH sesame\r\nCL.THROTTLE k 1 1 1\r\nRESET\r\nGET k\r\nMULTI\r\nAUTH sesame\r\nMULTI\r\nCLIENT SETNAME x\r\nRESET\r\nEXEC\r\n")
		c.expect("+OK\r\n", five(0, 2, 1, -1, 1), "+RESET\r\n", noAuth, noAuth, "+OK\r\n", "+OK\r\n", "+QUEUED\r\n", "+RESET\r\n",
			"-EXECABORT Transaction discarded because of: NOAUTH Authentication required.\r\n")
		// RESET begins the time to authenticate anew.
		require.Equal(t, "+OK\r\n", c.do("AUTH", "sesame"))
		f.police(time.Hour)
		require.Equal(t, "+RESET\r\n", c.do("RESET"))
		f.police(9 * time.Second)
		require.Equal(t, noAuth, c.do("PING"))
		require.Equal(t, "+RESET\r\n", c.do("RESET"), "a second one does not")
		f.police(time.Second)
		c.expectEnd()

		open := start(t, kind).dial()
		open.send("HELLO 3 SETNAME me\r\nSELECT 3\r\nCLIENT TRACKING ON\r\nMULTI\r\nRESET\r\nCLIENT GETNAME\r\nEXEC\r\nGET k\r\nCLIENT TRACKINGINFO\r\n")
		require.Contains(t, open.reply(), "%7")
		open.expect("+OK\r\n", "+OK\r\n", "+OK\r\n", "+RESET\r\n", "$-1\r\n", "-ERR EXEC without MULTI\r\n", "$-1\r\n")
		require.Contains(t, open.reply(), bulk("off"))
		require.Contains(t, open.do("CLIENT", "INFO"), " db=0 ")
	})
}

// TestAuthInsideMulti: it is queued like any command, and EXEC does not wait: what
// exceeds the limit of failures is refused there, right or wrong.
func TestAuthInsideMulti(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--requirepass", "sesame")
		c := f.dial()
		require.Equal(t, "+OK\r\n", c.do("AUTH", "sesame"))
		c.send("MULTI\r\nAUTH sesame\r\nAUTH guess\r\nPING\r\nEXEC\r\n")
		c.expect("+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n", array("+OK\r\n", wrongPass, "+PONG\r\n"))
		c.send("MULTI\r\n" + strings.Repeat("AUTH guess\r\n", 20) + "AUTH sesame\r\nEXEC\r\n")
		c.expect("+OK\r\n")
		for range 21 {
			c.expect("+QUEUED\r\n")
		}
		require.Equal(t, array(replicate(wrongPass, 21)...), c.reply())
		require.Zero(t, f.clock.Timers())
		require.Equal(t, "+PONG\r\n", c.do("PING"))
	})
}

func replicate(s string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = s
	}
	return all
}

// TestPasswordChangesAtRuntime: who is in stays in; who is not is let in when the
// password goes away.
func TestPasswordChangesAtRuntime(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		admin := f.dial()
		require.Equal(t, "+OK\r\n", admin.do("CONFIG", "SET", "requirepass", "sesame"))
		require.Equal(t, "+PONG\r\n", admin.do("PING"))
		c := f.dial()
		require.Equal(t, noAuth, c.do("PING"))
		require.Equal(t, "+OK\r\n", admin.do("CONFIG", "SET", "requirepass", ""))
		require.Equal(t, "+PONG\r\n", c.do("PING"))
		f.police(time.Hour)
		require.Equal(t, bulk(strings.Repeat("x", 100_000)), c.do("ECHO", strings.Repeat("x", 100_000)))
		require.Contains(t, c.do("HELLO", "3"), "%7")
	})
}

// fakePeer is a connection from wherever the test says.
type fakePeer struct {
	quietPeer
	remote net.Addr
}

func (p fakePeer) RemoteAddr() net.Addr { return p.remote }

// TestProtectedMode: without a password only this machine is served, whatever the
// server listens on, as in Redis 7.
func TestProtectedMode(t *testing.T) {
	local := []net.Addr{
		&net.TCPAddr{IP: net.ParseIP("127.0.0.1"), Port: 1},
		&net.TCPAddr{IP: net.ParseIP("127.9.9.9"), Port: 1},
		&net.TCPAddr{IP: net.ParseIP("::1"), Port: 1},
		&net.TCPAddr{IP: net.ParseIP("::ffff:127.0.0.1"), Port: 1},
		&net.UnixAddr{Name: "/tmp/sock", Net: "unix"},
	}
	remote := []net.Addr{
		&net.TCPAddr{IP: net.ParseIP("192.0.2.1"), Port: 1},
		&net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 1},
		&net.TCPAddr{IP: net.ParseIP("::ffff:192.0.2.1"), Port: 1},
		&net.IPAddr{IP: net.ParseIP("127.0.0.1")}, // of no kind that is known
	}
	admitted := func(flags ...string) (n int) {
		t.Helper()
		c, err := config.Load(flags, nil)
		require.NoError(t, err)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		s, err := server.New(c, server.Options{Listeners: []net.Listener{l}})
		require.NoError(t, err)
		for _, a := range local {
			session, _ := s.Engine().Open(fakePeer{remote: a})
			require.NotNil(t, session, "%v", a)
		}
		for _, a := range remote {
			session, rejection := s.Engine().Open(fakePeer{remote: a})
			if session != nil {
				n++
				continue
			}
			require.Regexp(t, `^-DENIED Redis is running in protected mode .*\r\n$`, string(rejection))
		}
		return n
	}
	require.Equal(t, 0, admitted())
	require.Equal(t, 0, admitted("--bind", "127.0.0.1"))
	require.Equal(t, len(remote), admitted("--requirepass", "sesame"))
	require.Equal(t, len(remote), admitted("--protected-mode", "no"))
	require.Equal(t, len(remote), admitted("--bind", "*", "--requirepass", "sesame"))
}
