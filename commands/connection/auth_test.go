package connection_test

import (
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

const (
	noAuth    = "-NOAUTH Authentication required.\r\n"
	wrongPass = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
)

// TestAuthTexts: each way to authenticate and to fail has the reply of Redis.
func TestAuthTexts(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		open := w.Start().Dial()
		require.Equal(t, "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?\r\n", open.Do("AUTH", "x"))
		require.Equal(t, "+OK\r\n", open.Do("AUTH", "default", "anything"))
		require.Equal(t, wrongPass, open.Do("AUTH", "nobody", "anything"))
		require.Equal(t, "-ERR wrong number of arguments for 'auth' command\r\n", open.Do("AUTH"))
		require.Equal(t, "-ERR syntax error\r\n", open.Do("AUTH", "a", "b", "c"))

		c := w.Start("--requirepass", "sesame").Dial()
		require.Equal(t, noAuth, c.Do("CL.THROTTLE", "k", "1", "1", "1"))
		require.Equal(t, noAuth, c.Do("MULTI"))
		require.Equal(t, "-ERR unknown command 'NOSUCH', with args beginning with: \r\n", c.Do("NOSUCH"))
		require.Equal(t, "-ERR wrong number of arguments for 'get' command\r\n", c.Do("GET"))
		require.Contains(t, c.Do("HELLO", "3"), "-NOAUTH HELLO must be called with the client already authenticated")
		require.Contains(t, c.Do("HELLO"), "-NOAUTH HELLO")
		require.Equal(t, "-NOPROTO unsupported protocol version\r\n", c.Do("HELLO", "4", "AUTH", "default", "sesame"))
		require.Equal(t, wrongPass, c.Do("HELLO", "3", "AUTH", "default", "no"))
		require.Equal(t, wrongPass, c.Do("AUTH", "other", "sesame"))
		require.Equal(t, wrongPass, c.Do("AUTH", ""))
		require.Equal(t, noAuth, c.Do("PING"))
		require.Contains(t, c.Do("HELLO", "3", "AUTH", "default", "sesame", "SETNAME", "me"), "%7\r\n")
		require.Equal(t, inproc.Bulk("me"), c.Do("CLIENT", "GETNAME"))
		require.Equal(t, wrongPass, c.Do("AUTH", "no"), "a failure leaves the client as it was")
		require.Equal(t, "+PONG\r\n", c.Do("PING"))
		require.Equal(t, "+OK\r\n", c.Do("QUIT"))
	})
}

// TestFailedAuthIsLimited: an address has ten failures at once and one a second. Further attempts
// wait for their turn, while other clients are served.
func TestFailedAuthIsLimited(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, clock := w.StartTimed("--requirepass", "sesame")
		friend := f.Dial()
		require.Equal(t, "+OK\r\n", friend.Do("AUTH", "sesame"))
		for i := range 10 { // a new connection does not reset the count
			c := f.Dial()
			if i%2 == 0 {
				require.Equal(t, wrongPass, c.Do("AUTH", "guess"))
			} else {
				require.Equal(t, wrongPass, c.Do("HELLO", "3", "AUTH", "default", "guess"))
			}
		}
		late, right := f.Dial(), f.Dial()
		late.Send("AUTH guess\r\nPING\r\n")
		w.Settle()
		require.Equal(t, 1, clock.Timers())
		right.Send("AUTH sesame\r\nPING\r\n")
		w.Settle()
		require.Equal(t, 2, clock.Timers())
		for range 100 {
			require.Equal(t, inproc.Five(0, 1000, 999, -1, 1), friend.Do("CL.THROTTLE", "k", "999", "1000", "1", "1")[:len(inproc.Five(0, 1000, 999, -1, 1))])
			require.Equal(t, ":1\r\n", friend.Do("DEL", "k"))
		}
		require.Equal(t, "11", friend.Info("acl_access_denied_auth"))
		w.Advance(999 * time.Millisecond)
		require.Equal(t, 2, clock.Timers())
		w.Advance(time.Millisecond)
		late.Expect(wrongPass, noAuth)
		require.Equal(t, 1, clock.Timers())
		w.Advance(time.Second)
		right.Expect("+OK\r\n", "+PONG\r\n")

		// The right password took its charge back, so another failure is answered at once.
		c := f.Dial()
		require.Equal(t, wrongPass, c.Do("AUTH", "guess"))
		c.Send("AUTH guess\r\n")
		w.Settle()
		require.Equal(t, 1, clock.Timers())
		w.Advance(10 * time.Second)
		c.Expect(wrongPass)
		c.ExpectEnd() // it had ten seconds to authenticate
		c = f.Dial()
		for range 10 {
			require.Equal(t, wrongPass, c.Do("AUTH", "guess"))
		}
	})
}

// TestPipelinedGuesses: a pipeline of wrong passwords is answered in order, and no command
// overtakes one that waits.
func TestPipelinedGuesses(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, clock := w.StartTimed("--requirepass", "sesame")
		c := f.Dial()
		c.Send(strings.Repeat("AUTH guess\r\n", 13) + "AUTH sesame\r\nPING\r\n")
		for range 10 {
			c.Expect(wrongPass)
		}
		w.Settle()
		require.Equal(t, 1, clock.Timers())
		w.Advance(time.Second)
		c.Expect(wrongPass)
		w.Settle()
		require.Equal(t, 1, clock.Timers())
		w.Advance(2 * time.Second)
		c.Expect(wrongPass, wrongPass)
		w.Advance(time.Second)
		c.Expect("+OK\r\n", "+PONG\r\n")
	})
}

// TestManyConnectionsGuessNoFaster: 300 connections of one address that guess all the time try no
// more than ten passwords at once and one a second.
func TestManyConnectionsGuessNoFaster(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--requirepass", "sesame", "--auth-timeout", "3600")
		friend := f.Dial()
		require.Equal(t, "+OK\r\n", friend.Do("AUTH", "sesame"))
		const seconds = 20
		var tried, refused atomic.Int64
		var guessers sync.WaitGroup
		began := time.Now()
		for range 300 {
			c := f.Dial()
			guessers.Go(func() {
				for time.Since(began) < seconds*time.Second {
					if c.Do("AUTH", "guess") == wrongPass {
						tried.Add(1)
					} else {
						refused.Add(1)
					}
				}
			})
		}
		guessers.Wait()
		require.InDelta(t, 10+seconds+5, tried.Load(), 3)
		require.Greater(t, refused.Load(), int64(250*seconds))
		require.Equal(t, "+PONG\r\n", friend.Do("PING"))
		require.Contains(t, f.Dial().Do("AUTH", "sesame"), "+OK", "the line is empty")
	})
}

// TestClientMayLeaveDuringADelayedAuth: nothing remains of a client that disconnects while its
// attempt waits, and a killed one gets no reply.
func TestClientMayLeaveDuringADelayedAuth(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, clock := w.StartTimed("--requirepass", "sesame")
		admin := f.Dial()
		require.Equal(t, "+OK\r\n", admin.Do("AUTH", "sesame"))
		c := f.Dial()
		for range 10 {
			require.Equal(t, wrongPass, c.Do("AUTH", "guess"))
		}
		victim := f.Dial()
		victim.Send("AUTH guess\r\n")
		w.Settle()
		require.Equal(t, 1, clock.Timers())
		require.Equal(t, ":0\r\n", admin.Do("CLIENT", "UNBLOCK", "3"), "that would be a way around the wait")
		require.Equal(t, ":1\r\n", admin.Do("CLIENT", "KILL", "ID", "3"))
		victim.ExpectEnd()
		w.Settle()
		require.Zero(t, clock.Timers())
		c.Send("AUTH guess\r\n")
		w.Settle()
		require.Equal(t, 1, clock.Timers())
		w.Net.Cut(f.Host, f.Host)
		w.Settle()
		require.Zero(t, clock.Timers())
	})
}

// TestResetDeauthenticates: RESET ends the login also for commands of the same packet, and inside
// MULTI.
func TestResetDeauthenticates(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--requirepass", "sesame")
		c := f.Dial()
		c.Send("AUTH sesame\r\nCL.THROTTLE k 1 1 1\r\nRESET\r\nGET k\r\nMULTI\r\nAUTH sesame\r\nMULTI\r\nCLIENT SETNAME x\r\nRESET\r\nEXEC\r\n")
		c.Expect("+OK\r\n", inproc.Five(0, 2, 1, -1, 1), "+RESET\r\n", noAuth, noAuth, "+OK\r\n", "+OK\r\n", "+QUEUED\r\n", "+RESET\r\n",
			"-EXECABORT Transaction discarded because of: NOAUTH Authentication required.\r\n")
		// RESET starts the time to authenticate again.
		require.Equal(t, "+OK\r\n", c.Do("AUTH", "sesame"))
		w.Advance(time.Minute)
		require.Equal(t, "+RESET\r\n", c.Do("RESET"))
		w.Advance(9 * time.Second)
		require.Equal(t, noAuth, c.Do("PING"))
		require.Equal(t, "+RESET\r\n", c.Do("RESET"), "a second one does not")
		w.Advance(time.Second)
		c.ExpectEnd()

		open := w.Start().Dial()
		open.Send("HELLO 3 SETNAME me\r\nSELECT 3\r\nCLIENT TRACKING ON\r\nMULTI\r\nRESET\r\nCLIENT GETNAME\r\nEXEC\r\nGET k\r\nCLIENT TRACKINGINFO\r\n")
		require.Contains(t, open.Reply(), "%7")
		open.Expect("+OK\r\n", "+OK\r\n", "+OK\r\n", "+RESET\r\n", "$-1\r\n", "-ERR EXEC without MULTI\r\n", "$-1\r\n")
		require.Contains(t, open.Reply(), inproc.Bulk("off"))
		require.Contains(t, open.Do("CLIENT", "INFO"), " db=0 ")
	})
}

// TestAuthInsideMulti: AUTH is queued like any command, and EXEC does not wait: an attempt that
// exceeds the limit of failures is refused there, whether its password is right or wrong.
func TestAuthInsideMulti(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, clock := w.StartTimed("--requirepass", "sesame")
		c := f.Dial()
		require.Equal(t, "+OK\r\n", c.Do("AUTH", "sesame"))
		c.Send("MULTI\r\nAUTH sesame\r\nAUTH guess\r\nPING\r\nEXEC\r\n")
		c.Expect("+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n", inproc.Array("+OK\r\n", wrongPass, "+PONG\r\n"))
		c.Send("MULTI\r\n" + strings.Repeat("AUTH guess\r\n", 20) + "AUTH sesame\r\nEXEC\r\n")
		c.Expect("+OK\r\n")
		for range 21 {
			c.Expect("+QUEUED\r\n")
		}
		require.Equal(t, inproc.Array(slices.Repeat([]string{wrongPass}, 21)...), c.Reply())
		require.Zero(t, clock.Timers())
		require.Equal(t, "+PONG\r\n", c.Do("PING"))
	})
}

// TestPasswordChangesAtRuntime: authenticated clients stay so when the password changes, and the
// others are authenticated when the password is removed.
func TestPasswordChangesAtRuntime(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		admin := f.Dial()
		require.Equal(t, "+OK\r\n", admin.Do("CONFIG", "SET", "requirepass", "sesame"))
		require.Equal(t, "+PONG\r\n", admin.Do("PING"))
		c := f.Dial()
		require.Equal(t, noAuth, c.Do("PING"))
		require.Equal(t, "+OK\r\n", admin.Do("CONFIG", "SET", "requirepass", ""))
		require.Equal(t, "+PONG\r\n", c.Do("PING"))
		w.Advance(time.Minute)
		require.Equal(t, inproc.Bulk(strings.Repeat("x", 100_000)), c.Do("ECHO", strings.Repeat("x", 100_000)))
		require.Contains(t, c.Do("HELLO", "3"), "%7")
	})
}

// TestProtectedMode: without a password only clients of this machine are served, whatever
// addresses the server listens on, as in Redis 7.
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
		&net.IPAddr{IP: net.ParseIP("127.0.0.1")}, // not a *net.TCPAddr or *net.UnixAddr
	}
	admitted := func(flags ...string) (n int) {
		t.Helper()
		s, err := inproc.New(inproc.Epoch, []net.Listener{}, flags...)
		require.NoError(t, err)
		for _, a := range local {
			session, _ := s.Open(a)
			require.NotNil(t, session, "%v", a)
		}
		for _, a := range remote {
			session, rejection := s.Open(a)
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
