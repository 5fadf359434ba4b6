package server_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSkippedReplyOfSlowCommand: the silence that CLIENT REPLY SKIP asks for covers
// the reply of a command that parks, too.
func TestSkippedReplyOfSlowCommand(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		c := start(t, kind).dial()
		c.send("CLIENT REPLY SKIP\r\nFLUSHALL\r\nPING a\r\n")
		c.expect(bulk("a"))
		c.send("CLIENT REPLY OFF\r\nKEYS *\r\nSW.ALLOW k 1 60 1 BLOCK 0\r\nNOSUCH\r\nPING\r\nCLIENT REPLY ON\r\nFLUSHDB\r\nPING b\r\n")
		c.expect("+OK\r\n", "+OK\r\n", bulk("b"))
	})
}

// TestLateHelloSwitchesProtocol: commands behind a HELLO AUTH that had to wait are
// answered in the protocol that it asked for.
func TestLateHelloSwitchesProtocol(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--requirepass", "sesame")
		c := f.dial()
		for range 10 {
			require.Contains(t, c.do("AUTH", "wrong"), "-WRONGPASS")
		}
		c.send("HELLO 3 AUTH default sesame\r\nGET nothing\r\n")
		eventually(t, "the attempt waits", func() bool { return f.clock.Timers() == 1 })
		f.clock.Advance(time.Second)
		require.Contains(t, c.reply(), "%7\r\n")
		c.expect("_\r\n")
	})
}
