package session_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/internal/remotedouble"
	"github.com/cellserver/cellserver/transport"
)

// A window of one unit per minute that starts with its first hit.
const (
	takeWindow = "SW.ALLOW k 1 60 1 FIXED ANCHOR FIRST"
	waitWindow = takeWindow + " BLOCK 0"
	granted    = "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n"
)

// waiting feeds a command that waits, after everything asked before it was decided.
func waiting(t *testing.T, s *remotedouble.Server, command string, n int) *remotedouble.Session {
	t.Helper()
	c := open(t, s.Engine)
	_, out, next := c.Turn(lines(command), nil)
	require.Empty(t, out)
	require.Equal(t, transport.Wait, next)
	require.Equal(t, n, s.Stores.Waiting())
	settled(t, s)
	return c
}

// settled requires that no asks are pending and that the first waiter has its timer.
func settled(t *testing.T, s *remotedouble.Server) {
	t.Helper()
	synctest.Wait()
	require.Zero(t, s.Double.Pending())
	require.Positive(t, s.Clock.Timers())
}

// asking feeds a session once, and waits until its asks are decided.
func asking(t *testing.T, s *remotedouble.Server, c *remotedouble.Session, in []byte) (rest, out []byte) {
	t.Helper()
	s.Double.Hold() // a decision before Submit returns would be answered at once
	rest, out, next := c.Turn(in, nil)
	require.Equal(t, transport.Park, next)
	s.Double.Release()
	synctest.Wait()
	require.True(t, c.Woken())
	return rest, out
}

// answered requires that a waiting session gets the reply want.
func answered(t *testing.T, c *remotedouble.Session, want string) {
	t.Helper()
	synctest.Wait()
	require.True(t, c.Woken())
	out, _ := c.Feed(nil)
	require.Equal(t, want, string(out))
}

// TestBlockElsewhereIsFIFO: calls that wait for the same key pass in the order of arrival, and room
// that another server has made is noticed within a tenth of a second.
func TestBlockElsewhereIsFIFO(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t)
		other, err := remotedouble.Share(s.Double, s.Clock, nil)
		require.NoError(t, err)
		out, _ := open(t, other.Engine).Feed(lines(takeWindow))
		require.Equal(t, granted, string(out))
		first := waiting(t, s, waitWindow, 1)
		second := waiting(t, s, waitWindow, 2)
		_, blocked := s.CountClients()
		require.Equal(t, int64(2), blocked)
		s.Clock.Advance(time.Second)
		require.False(t, first.Woken())
		settled(t, s)
		out, _ = open(t, other.Engine).Feed(lines("DEL k"))
		require.Equal(t, ":1\r\n", string(out))
		require.False(t, first.Woken(), "it has yet to look")
		s.Clock.Advance(100 * time.Millisecond)
		answered(t, first, granted)
		require.False(t, second.Woken())
		settled(t, s)
		for range 600 {
			s.Clock.Advance(100 * time.Millisecond)
			settledOr(t, s, second)
		}
		answered(t, second, granted)
		require.Zero(t, s.Stores.Waiting())
		require.Zero(t, s.Clock.Timers())
	})
}

// TestBlockElsewhereNoticesRoomAtOnce: room that a call of the same server makes goes to the
// waiting client at once, without a timer.
func TestBlockElsewhereNoticesRoomAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		for take, free := range map[string][2]string{
			"CC.ACQUIRE k 1 60 a": {"CC.ACQUIRE k 1 60 b BLOCK 0", "CC.RELEASE k a"},
			"SW.ALLOW k 1 60 LOG": {"SW.ALLOW k 1 60 LOG BLOCK 0", "SW.ALLOW k 1 60 -1 LOG"},
			"SW.ALLOW k 1 60":     {"SW.ALLOW k 1 60 BLOCK 0", "DEL k"},
			"SW.ALLOW k 1 61":     {"SW.ALLOW k 1 61 BLOCK 0", "PEXPIRE k -1"},
			"SW.ALLOW k 1 62":     {"SW.ALLOW k 1 62 BLOCK 0", "FLUSHDB"},
			"SW.ALLOW k 1 63 LOG": {"SW.ALLOW k 1 63 LOG BLOCK 0", "RL.MULTI 1 k SW 1 63 -1 LOG"},
		} {
			s := newServer(t)
			c := open(t, s.Engine)
			_, _ = c.Feed(lines(take))
			w := waiting(t, s, free[0], 1)
			_, _ = c.Feed(lines(free[1]))
			synctest.Wait()
			require.True(t, w.Woken(), free[1])
			out, _ := w.Feed(nil)
			require.Equal(t, "*5\r\n:0\r\n:1\r\n:0\r\n", string(out[:16]), free[1])
		}
	})
}

// settledOr is settled for a wait that may be over.
func settledOr(t *testing.T, s *remotedouble.Server, c *remotedouble.Session) {
	t.Helper()
	synctest.Wait()
	require.Zero(t, s.Double.Pending())
	require.True(t, s.Clock.Timers() > 0 || c.Woken())
}

// TestBlockElsewhereEndsInEveryWay: a wait ends by a timeout, by CLIENT UNBLOCK, when the client
// disconnects, when the server stops, if the call could never pass, and by an error.
func TestBlockElsewhereEndsInEveryWay(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, err := remotedouble.NewServer(epoch, 1, nil)
		require.NoError(t, err)
		c := open(t, s.Engine)
		out, _ := c.Feed(lines(takeWindow, "CC.ACQUIRE c 1 60 a"))
		require.Equal(t, granted+granted, string(out))

		timed := waiting(t, s, takeWindow+" BLOCK 0.05", 1)
		s.Clock.Advance(50 * time.Millisecond)
		answered(t, timed, "*5\r\n:1\r\n:1\r\n:0\r\n:60\r\n:60\r\n")

		unblocked := waiting(t, s, "CC.ACQUIRE c 1 60 b BLOCK 0", 1)
		out, _ = c.Feed(lines("CLIENT UNBLOCK 3 ERROR"))
		require.Equal(t, ":1\r\n", string(out))
		answered(t, unblocked, "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n")

		gone := waiting(t, s, waitWindow, 1)
		gone.Closed()
		synctest.Wait()
		require.Zero(t, s.Stores.Waiting())

		never := open(t, s.Engine)
		_, _, next := never.Turn(lines("SW.ALLOW k 1 60 5 FIXED ANCHOR FIRST BLOCK 0"), nil)
		require.Equal(t, transport.Wait, next)
		answered(t, never, "*5\r\n:1\r\n:1\r\n:0\r\n:-1\r\n:60\r\n")

		s.Double.Fail(func(*decide.Ask) error { return decide.Unavailable("timeout") })
		failed := open(t, s.Engine)
		_, _, _ = failed.Turn(lines(waitWindow), nil)
		answered(t, failed, "-UNAVAILABLE timeout\r\n")
		s.Double.Fail(nil)

		first, second := waiting(t, s, waitWindow, 1), waiting(t, s, waitWindow, 2)
		s.Drain()
		for _, c := range []*remotedouble.Session{first, second} {
			answered(t, c, "*5\r\n:1\r\n:1\r\n:0\r\n:60\r\n:60\r\n")
		}
		require.Zero(t, s.Stores.Waiting())
		require.Zero(t, s.Clock.Timers())
		s.Close() // the bubble requires all goroutines to end
	})
}

// TestBlockElsewhereIsInterruptedWhileItTries: a wait can be ended while the Remote decides for it.
func TestBlockElsewhereIsInterruptedWhileItTries(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		for range 20 {
			s := newServer(t)
			c := open(t, s.Engine)
			_, _ = c.Feed(lines(takeWindow))
			s.Double.Hold()
			w := open(t, s.Engine)
			_, _, next := w.Turn(lines(waitWindow), nil)
			require.Equal(t, transport.Wait, next)
			synctest.Wait()
			require.Equal(t, 1, s.Double.Pending())
			out, _ := c.Feed(lines("CLIENT UNBLOCK 2"))
			require.Equal(t, ":1\r\n", string(out))
			s.Double.Release()
			answered(t, w, "*5\r\n:1\r\n:1\r\n:0\r\n:60\r\n:60\r\n")
			require.Zero(t, s.Stores.Waiting())

			s.Double.Hold()
			w = open(t, s.Engine)
			_, _, _ = w.Turn(lines(waitWindow), nil)
			synctest.Wait()
			require.Equal(t, 1, s.Double.Pending())
			w.Closed()
			s.Double.Release()
			synctest.Wait()
			require.Zero(t, s.Stores.Waiting())
		}
	})
}

// TestReservationElsewhereWaits: TB.ACQUIRE BLOCK is decided in its own flight, and replies when
// its tokens are there. If the client disconnects, the tokens are returned.
func TestReservationElsewhereWaits(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t)
		c := open(t, s.Engine)
		rest, out := asking(t, s, c, lines("TB.ACQUIRE b 1 1 10 BLOCK 60", "TB.ACQUIRE b 1 1 10 BLOCK 60", "PING"))
		require.Empty(t, out)
		rest, out = asking(t, s, c, rest)
		require.Equal(t, "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:10\r\n", string(out))
		rest, out, next := c.Turn(rest, nil)
		require.Empty(t, out)
		require.Equal(t, transport.Wait, next)

		gone := open(t, s.Engine)
		_, _ = asking(t, s, gone, lines("TB.ACQUIRE b 1 1 10 BLOCK 60"))
		_, _, next = gone.Turn(nil, nil)
		require.Equal(t, transport.Wait, next)
		require.Equal(t, 2, s.Clock.Timers())
		decided := s.Double.Decided()
		gone.Closed()
		synctest.Wait()
		require.Equal(t, decided+1, s.Double.Decided(), "its tokens are given back")
		require.Equal(t, 1, s.Clock.Timers())

		s.Clock.Advance(10 * time.Second)
		synctest.Wait()
		require.True(t, c.Woken())
		more, _ := c.Feed(rest)
		require.Equal(t, "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:10\r\n+PONG\r\n", string(more))
	})
}
