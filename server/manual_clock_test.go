package server_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// nothingWritten is the reply to commands about files where there are none.
const nothingWritten = "-ERR this server keeps nothing on disk\r\n"

// TestAManualClockMovesOnlyWhenItIsTold: the time of the machine changes nothing.
func TestAManualClockMovesOnlyWhenItIsTold(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--clock", "manual")
		c := s.Dial()
		allowed, denied := ":0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n", ":1\r\n:1\r\n:0\r\n"
		require.Equal(t, "*2\r\n$10\r\n1735689600\r\n$1\r\n0\r\n", c.Do("TIME"))
		require.Equal(t, "*5\r\n"+allowed, c.Do("CL.THROTTLE", "u", "0", "1", "60"))
		w.Advance(time.Hour)
		require.Equal(t, "*5\r\n"+denied+":60\r\n:60\r\n", c.Do("CL.THROTTLE", "u", "0", "1", "60"))
		require.Equal(t, inproc.OK, c.Do("DEBUG", "CLOCK", "ADD", "59s"))
		require.Equal(t, "*5\r\n"+denied+":1\r\n:1\r\n", c.Do("CL.THROTTLE", "u", "0", "1", "60"))

		require.Equal(t, inproc.OK, c.Do("SET", "short", "1", "PX", "1500"))
		require.Equal(t, inproc.OK, c.Do("DEBUG", "CLOCK", "ADD", "1000ms"))
		require.Equal(t, "*5\r\n"+allowed, c.Do("CL.THROTTLE", "u", "0", "1", "60"))
		require.Equal(t, "$1\r\n1\r\n", c.Do("GET", "short"))
		require.Equal(t, inproc.OK, c.Do("debug", "clock", "add", "1d"))
		require.Equal(t, "$-1\r\n", c.Do("GET", "short"))
		require.Equal(t, inproc.OK, c.Do("DEBUG", "CLOCK", "ADD", "1h"))
		require.Equal(t, "*2\r\n$10\r\n1735779660\r\n$1\r\n0\r\n", c.Do("TIME"))
	})
}

// TestWaitersFollowAManualClock: each waits for its own instant, and a call that waits too long is denied.
func TestWaitersFollowAManualClock(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--clock", "manual")
		c := s.Dial()
		require.Contains(t, c.Do("TB.ACQUIRE", "b", "1", "1", "60"), "*5\r\n:0\r\n")
		require.Contains(t, c.Do("SW.ALLOW", "w", "1", "60", "LOG"), "*5\r\n:0\r\n")
		first, second, short, list := s.Dial(), s.Dial(), s.Dial(), s.Dial()
		first.Command("TB.ACQUIRE", "b", "1", "1", "60", "BLOCK", "90")
		w.Settle()
		second.Command("TB.ACQUIRE", "b", "1", "1", "60", "BLOCK", "150")
		short.Command("SW.ALLOW", "w", "1", "60", "LOG", "BLOCK", "30")
		list.Command("BLPOP", "l", "29")
		w.Advance(time.Hour)
		require.Contains(t, c.Do("INFO", "clients"), "blocked_clients:4\r\n")
		require.Equal(t, inproc.OK, c.Do("DEBUG", "CLOCK", "ADD", "30s"))
		require.Equal(t, "*5\r\n:1\r\n:1\r\n:0\r\n:30\r\n:30\r\n", short.Reply())
		require.Equal(t, "*-1\r\n", list.Reply())
		require.Equal(t, inproc.OK, c.Do("DEBUG", "CLOCK", "ADD", "30s"))
		require.Equal(t, "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:120\r\n", first.Reply())
		w.Settle()
		require.Contains(t, c.Do("INFO", "clients"), "blocked_clients:1\r\n")
		require.Equal(t, inproc.OK, c.Do("DEBUG", "CLOCK", "ADD", "1m"))
		require.Equal(t, "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n", second.Reply())
	})
}

// TestWhatDelaysClientsFollowsTheMachine: with a manual clock, too, DEBUG SLEEP, CLIENT PAUSE and the time after which a
// script counts as busy pass by themselves.
func TestWhatDelaysClientsFollowsTheMachine(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start("--clock", "manual", "--enable-debug-command", "yes").Dial()
		took := func(command ...string) time.Duration {
			began := time.Now()
			require.Equal(t, inproc.OK, c.Do(command...))
			return time.Since(began)
		}
		require.Equal(t, 5*time.Second, took("DEBUG", "SLEEP", "5"))
		require.Zero(t, took("CLIENT", "PAUSE", "5000", "ALL"))
		require.Equal(t, 5*time.Second, took("DEBUG", "CLOCK", "ADD", "1s"))
		require.Equal(t, "*2\r\n$10\r\n1735689601\r\n$1\r\n0\r\n", c.Do("TIME"))

		require.Zero(t, took("CLIENT", "PAUSE", "3000", "WRITE"))
		w.Advance(2 * time.Second)
		require.Zero(t, took("CLIENT", "PAUSE", "3000", "WRITE"), "a pause is extended")
		require.Zero(t, took("DEBUG", "CLOCK", "ADD", "1h"))
		require.Zero(t, took("CLIENT", "PAUSE", "500", "WRITE"), "and not shortened")
		require.Equal(t, 3*time.Second, took("SET", "k", "1"))
	})
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.StartAdmin("--clock", "manual", "--requirepass", "right")
		c := s.Dial()
		for range 10 {
			require.Contains(t, c.Do("AUTH", "wrong"), "-WRONGPASS")
		}
		began := time.Now()
		require.Contains(t, c.Do("AUTH", "wrong"), "-")
		require.Equal(t, inproc.OK, c.Do("AUTH", "right"))
		require.Less(t, time.Since(began), time.Minute)
		status, _ := s.Get("/api/v1/overview", "default", "right")
		require.Equal(t, 200, status)
	})
}

// TestAManualClockWaitsForWhatItMoves: a call that waits is let in at its time, also if the clock moves on at once to the
// end of its wait, and before a call that comes later.
func TestAManualClockWaitsForWhatItMoves(t *testing.T) {
	for _, limit := range [][]string{
		{"SW.ALLOW", "k", "1", "60", "LOG"}, {"SW.ALLOW", "k", "1", "60", "FIXED"}, {"TB.ACQUIRE", "k", "1", "1", "60"}, {"CC.ACQUIRE", "k", "1", "60", "member"},
	} {
		inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
			s := w.Start("--clock", "manual")
			c := s.Dial()
			require.Contains(t, c.Do(limit...), "*5\r\n:0\r\n")
			var waiting []*inproc.Client
			for i := range 3 {
				call := slices.Concat(limit, []string{"BLOCK", "600"})
				if call[0] == "CC.ACQUIRE" {
					call[4] = "other" + strconv.Itoa(i)
				}
				waits := s.Dial()
				waits.Command(call...)
				w.Settle()
				waiting = append(waiting, waits)
			}
			c.Send("DEBUG CLOCK ADD 1m\r\n" + strings.Join(limit, " ") + "\r\n")
			require.Equal(t, inproc.OK, c.Reply())
			require.Contains(t, c.Reply(), "*5\r\n:1\r\n", "%v: the first waiter was before", limit)
			require.Contains(t, waiting[0].Reply(), "*5\r\n:0\r\n", "%v", limit)
			require.Equal(t, inproc.OK, c.Do("DEBUG", "CLOCK", "ADD", "1h"))
			for _, waits := range waiting[1:] {
				require.Contains(t, waits.Reply(), "*5\r\n:0\r\n", "%v", limit)
			}
		})
	}
}

// TestAManualClockKeepsNothing: no command writes a file or makes a replica, and files from before are neither read nor
// changed.
func TestAManualClockKeepsNothing(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.StartAdmin("--appendonly", "yes")
		require.Equal(t, inproc.OK, s.Dial().Do("SET", "k", "1"))
		require.NoError(t, s.Stop())
		s.Restart("--appendonly", "no", "--clock", "manual")
		require.Contains(t, s.Log.String(), "this server keeps no limits itself: what is kept on disk is not used")
		c := s.Dial()
		require.Equal(t, "$-1\r\n", c.Do("GET", "k"))
		for _, command := range [][]string{{"SAVE"}, {"BGSAVE"}, {"BGREWRITEAOF"}} {
			require.Equal(t, nothingWritten, c.Do(command...))
		}
		require.Equal(t, nothingWritten, c.Do("SHUTDOWN", "SAVE"))
		alone := "-ERR This server does not replicate: its clock is manual, and replicas would need one that runs\r\n"
		require.Equal(t, alone, c.Do("REPLICAOF", "127.0.0.1", "6379"))
		require.Equal(t, alone, c.Do("PSYNC", "?", "-1"))
		require.Equal(t, alone, c.Do("FAILOVER"))
		require.Equal(t, ":0\r\n", c.Do("WAIT", "1", "0"))
		require.Equal(t, inproc.OK, c.Do("SET", "k", "2"))
		require.Contains(t, c.Do("CONFIG", "SET", "clock", "system"), "can't set immutable config")
		require.Contains(t, c.Do("INFO", "server"), "clock_manual:1\r\n")
		require.Equal(t, "1", s.Series()["cellserver_clock_manual"])
		status, _ := s.Get("/readyz", "", "")
		require.Equal(t, 200, status)
		w.Advance(2 * time.Second)
		overview := c.Do("RL.REPORT", "OVERVIEW")
		require.Contains(t, overview, `"kind":"check","sick":false,"title":"The clock is manual: this server is for tests only."`)
		require.Contains(t, overview, `{"id":"clock","ok":false,"value":0,"limit":1,"name":"Clock is steady","text":"moves only by DEBUG CLOCK ADD","bound":"clock system"}`)
		require.Contains(t, s.Log.String(), "the clock is manual: this server is for tests only")
		require.NoError(t, s.Stop())
		s.Restart("--appendonly", "yes", "--clock", "system")
		require.Equal(t, "$1\r\n1\r\n", s.Dial().Do("GET", "k"))
	})
}

// TestDebugClockChecksItsArguments: what is no positive duration moves nothing.
func TestDebugClockChecksItsArguments(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start("--clock", "manual").Dial()
		for _, duration := range []string{"", "0s", "-1s", "60", "1.5s", "1y", "s", "60 s", "60S", "1000000000000000000000s"} {
			require.Equal(t, "-ERR DEBUG CLOCK ADD takes a positive duration with a unit, such as 500ms, 60s, 1m, 12h or 1d\r\n",
				c.Do("DEBUG", "CLOCK", "ADD", duration), duration)
		}
		require.Equal(t, "-ERR a manual clock ends with the year 2199\r\n", c.Do("DEBUG", "CLOCK", "ADD", "64000d"))
		require.Equal(t, "-ERR a manual clock ends with the year 2199\r\n", c.Do("DEBUG", "CLOCK", "ADD", "106752d"))
		require.Equal(t, inproc.OK, c.Do("MULTI"))
		require.Equal(t, "+QUEUED\r\n", c.Do("DEBUG", "CLOCK", "ADD", "1s"))
		require.Equal(t, "*1\r\n-ERR DEBUG CLOCK ADD has no effect in a transaction, which has one instant: call it before\r\n", c.Do("EXEC"))
		require.Contains(t, c.Do("DEBUG", "SLEEP", "0"), "-ERR DEBUG command not allowed.")
		require.Contains(t, c.Do("DEBUG", "CLOCK", "ADD"), "-ERR unknown subcommand or wrong number of arguments for 'CLOCK'")
		require.Contains(t, c.Do("DEBUG", "CLOCK", "SET", "1s"), "-ERR unknown subcommand")
		require.Equal(t, "*2\r\n$10\r\n1735689600\r\n$1\r\n0\r\n", c.Do("TIME"))
		require.Equal(t, inproc.OK, c.Do("DEBUG", "CLOCK", "ADD", "63917d"))
		require.Equal(t, "-ERR a manual clock ends with the year 2199\r\n", c.Do("DEBUG", "CLOCK", "ADD", "1ms"))
		w.Advance(3 * time.Second) // the server takes samples and sweeps
		require.Contains(t, c.Do("CL.THROTTLE", "u", "0", "1", "60"), "*5\r\n:0\r\n")
	})
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		require.Contains(t, w.Start().Dial().Do("DEBUG", "CLOCK", "ADD", "1s"), "-ERR DEBUG command not allowed.")
		c := w.Start("--enable-debug-command", "yes").Dial()
		require.Equal(t, "-ERR DEBUG CLOCK needs a server that was started with --clock manual\r\n", c.Do("DEBUG", "CLOCK", "ADD", "1s"))
		require.Contains(t, c.Do("INFO", "server"), "clock_manual:0\r\n")
	})
}
