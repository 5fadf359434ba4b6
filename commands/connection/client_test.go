package connection_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestKilledClientIsGoneAtOnce: a killed client is no longer listed, even if its connection has
// not ended yet.
func TestKilledClientIsGoneAtOnce(t *testing.T) {
	c := inproc.Open(t)
	victim := c.Another()
	id := strings.Trim(victim.Do("CLIENT", "ID"), ":\r\n")
	require.Contains(t, c.Do("CLIENT", "LIST"), "id="+id+" ")
	require.Equal(t, ":1\r\n", c.Do("CLIENT", "KILL", "ID", id))
	require.Equal(t, ":0\r\n", c.Do("CLIENT", "KILL", "ID", id))
	require.NotContains(t, c.Do("CLIENT", "LIST"), "id="+id+" ")
}

// TestKillArguments: CLIENT KILL replies to bad arguments with the errors of Redis.
func TestKillArguments(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		for args, want := range map[string]string{
			"KILL":                                 "-ERR wrong number of arguments for 'client|kill' command\r\n",
			"KILL ID":                              "-ERR No such client\r\n",
			"KILL ID 0":                            "-ERR client-id should be greater than 0\r\n",
			"KILL ID x":                            "-ERR client-id should be greater than 0\r\n",
			"KILL ID 1 ADDR":                       "-ERR syntax error\r\n",
			"KILL TYPE bogus":                      "-ERR Unknown client type 'bogus'\r\n",
			"KILL USER bogus":                      "-ERR No such user 'bogus'\r\n",
			"KILL SKIPME bogus":                    "-ERR syntax error\r\n",
			"KILL BOGUS x":                         "-ERR syntax error\r\n",
			"UNBLOCK x":                            "-ERR value is not an integer or out of range\r\n",
			"UNBLOCK 1 MAYBE":                      "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR\r\n",
			"UNBLOCK 99":                           ":0\r\n",
			"UNBLOCK 1":                            ":0\r\n",
			"SETNAME a\x01b":                       "-ERR Client names cannot contain spaces, newlines or special characters.\r\n",
			"SETINFO LIB-NAME \x01":                "-ERR LIB-NAME cannot contain spaces, newlines or special characters.\r\n",
			"SETNAME " + strings.Repeat("x", 5000): "-ERR Client names cannot be longer than 1024 characters: this one has 5000\r\n",
			"SETINFO LIB-VER " + strings.Repeat("x", 1025): "-ERR LIB-VER cannot be longer than 1024 characters: this one has 1025\r\n",
			"SETINFO lib-x y":        "-ERR Unrecognized option 'lib-x'\r\n",
			"REPLY maybe":            "-ERR syntax error\r\n",
			"MAINT_NOTIFICATIONS ON": "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.\r\n",
			"CACHING YES":            "-ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled\r\n",
			"LIST TYPE bogus":        "-ERR Unknown client type 'bogus'\r\n",
			"LIST ID x":              "-ERR Invalid client ID\r\n",
			"LIST BOGUS":             "-ERR syntax error\r\n",
			"LIST ID 4711":           "$0\r\n\r\n",
			"NO-EVICT maybe":         "-ERR syntax error\r\n",
		} {
			require.Equal(t, want, c.Do(append([]string{"CLIENT"}, strings.Split(args, " ")...)...), args)
		}
	})
}

// TestClientReply: ON, OFF and SKIP work with commands that are answered at once, fail, park or
// are queued.
func TestClientReply(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, clock := w.StartTimed()
		c := f.Dial()
		for packet, want := range map[string][]string{
			"CLIENT REPLY SKIP\r\nPING\r\nPING a\r\n":                                                                    {inproc.Bulk("a")},
			"CLIENT REPLY SKIP\r\nCLIENT REPLY SKIP\r\nPING\r\nPING a\r\n":                                               {inproc.Bulk("a")},
			"CLIENT REPLY SKIP\r\nNOSUCH\r\nPING a\r\n":                                                                  {inproc.Bulk("a")},
			"CLIENT REPLY SKIP\r\nGET\r\nPING a\r\n":                                                                     {inproc.Bulk("a")},
			"CLIENT REPLY SKIP\r\nFLUSHALL\r\nPING a\r\n":                                                                {inproc.Bulk("a")},
			"CLIENT REPLY SKIP\r\nCLIENT REPLY ON\r\nPING a\r\n":                                                         {"+OK\r\n", inproc.Bulk("a")},
			"CLIENT REPLY OFF\r\nPING\r\nKEYS *\r\nNOSUCH\r\nCLIENT REPLY SKIP\r\nPING\r\nCLIENT REPLY ON\r\nPING a\r\n": {"+OK\r\n", inproc.Bulk("a")},
			"CLIENT REPLY OFF\r\nSW.ALLOW x 1 60 1 BLOCK 0\r\nMULTI\r\nPING\r\nEXEC\r\nCLIENT REPLY ON\r\n":              {"+OK\r\n"},
			"CLIENT REPLY SKIP\r\nMULTI\r\nPING\r\nEXEC\r\n":                                                             {"+QUEUED\r\n", inproc.Array("+PONG\r\n")},
			"CLIENT REPLY OFF\r\nRESET\r\nPING\r\n":                                                                      {"+RESET\r\n", "+PONG\r\n"},
		} {
			c.Send(packet)
			c.Expect(want...)
		}
		// The reply of a command that waits is skipped, too.
		require.Equal(t, inproc.Five(0, 1, 0, -1, 1), c.Do("TB.ACQUIRE", "b", "1", "1", "1"))
		c.Send("CLIENT REPLY SKIP\r\nTB.ACQUIRE b 1 1 1 1 BLOCK 0\r\nPING a\r\n")
		w.Settle()
		require.Equal(t, 1, clock.Timers())
		w.Advance(time.Second)
		c.Expect(inproc.Bulk("a"))
		// The error that closes the connection is suppressed, too.
		c.Send("CLIENT REPLY OFF\r\nPING\r\n*x\r\n")
		c.ExpectEnd()
	})
}

// TestDelayedHelloSwitchesTheProtocol: commands after a HELLO AUTH that had to wait are answered
// in the protocol that it asked for.
func TestDelayedHelloSwitchesTheProtocol(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f, clock := w.StartTimed("--requirepass", "sesame")
		c := f.Dial()
		for range 10 {
			require.Contains(t, c.Do("AUTH", "wrong"), "-WRONGPASS")
		}
		c.Send("HELLO 3 AUTH default sesame SETNAME me\r\nGET nothing\r\nCLIENT GETNAME\r\n")
		w.Settle()
		require.Equal(t, 1, clock.Timers())
		w.Advance(time.Second)
		require.Contains(t, c.Reply(), "%7\r\n")
		c.Expect("_\r\n", inproc.Bulk("me"))
	})
}

// TestUnknownCommandIsNoLastCommand: for an unknown command CLIENT LIST names the command before
// it, also one of the same batch.
func TestUnknownCommandIsNoLastCommand(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		c, admin := f.Dial(), f.Dial()
		for _, unknown := range []string{"FOO\r\n", "CLIENT FOO\r\n"} {
			require.Equal(t, "+PONG\r\n", c.Do("PING"))
			c.Send("SET key value\r\n" + unknown)
			c.Expect("+OK\r\n")
			require.Contains(t, c.Reply(), "ERR unknown")
			require.Contains(t, admin.Do("CLIENT", "LIST"), "cmd=set")
		}
	})
}
