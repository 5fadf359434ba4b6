package limiters_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// held is a conversation about reservations and calls with ID. Times are in seconds, and no token comes back
// meanwhile. A line "+10s" lets time pass. The other lines are calls, some of them repeated.
const held = `
RL.POLICY SET api LIMITS SW 60 86400 FIXED ANCHOR FIRST CALLS TB 1000 1 86400 CC 10 300
TB.ACQUIRE tb 1000 1 86400 300 RESERVE a 3600
TB.ACQUIRE tb 1000 1 86400 300 RESERVE a 3600
SW.ALLOW sw 1000 86400 300 FIXED ANCHOR FIRST RESERVE a 3600
SW.ALLOW counter 1000 864000 300 RESERVE a 3600
SW.ALLOW log 1000 86400 300 LOG RESERVE a 3600
RL.USE api acme 300 RESERVE a 3600
RL.USE api acme 300 RESERVE a 3600
RL.USE api acme 200 RESERVE b 3600
RL.USE api acme 501 RESERVE c 3600
TB.ACQUIRE tb 1000 1 86400 50 ID d
TB.ACQUIRE tb 1000 1 86400 50 ID d
RL.MULTI 2 sw tb SW 1000 86400 20 FIXED ANCHOR FIRST TB 1000 1 86400 20 ID e
RL.MULTI 2 sw tb SW 1000 86400 20 FIXED ANCHOR FIRST TB 1000 1 86400 20 ID e
TB.ACQUIRE tb 1000 1 86400 100 RESERVE f 100
RL.USE api acme 400 RESERVE f 100
RL.COMMIT tb a 200
RL.COMMIT tb a 200
RL.COMMIT sw a 500
RL.COMMIT sw a 500
RL.CANCEL counter a
RL.CANCEL counter a
RL.COMMIT log a 1
RL.COMMIT acme a 100 POLICY api
RL.COMMIT acme a 100 POLICY api
RL.RENEW acme b 7200 POLICY api
TB.ACQUIRE tb 1000 1 86400 300 RESERVE a 3600
TB.ACQUIRE tb 1000 1 86400 0
SW.ALLOW sw 1000 86400 0 FIXED ANCHOR FIRST
SW.ALLOW counter 1000 864000 0
SW.ALLOW log 1000 86400 0 LOG
+100s
TB.ACQUIRE tb 1000 1 86400 0
RL.USE api acme 0 0 0 WITHDETAILS
RL.COMMIT tb f 70
RL.COMMIT tb f 70
RL.CANCEL acme f POLICY api
RL.COMMIT acme f 5 POLICY api
RL.CANCEL acme b POLICY api
RL.COMMIT tb a 200
RL.COMMIT tb nosuch 200
TB.ACQUIRE tb 1000 1 86400 0
RL.USE api acme 0 0 0 WITHDETAILS
`

// untimed leaves out the times of a reply, which depend on how long an event takes.
func untimed(reply string) string {
	for _, five := range strings.Split(reply, "*5\r\n")[1:] {
		fields := strings.SplitN(five, "\r\n", 6)
		if len(fields) == 6 {
			reply = strings.Replace(reply, "*5\r\n"+five, strings.Join(fields[:3], " ")+"\r\n"+fields[5], 1)
		}
	}
	return reply
}

// TestReservationsOutliveCrashesAndHandovers: before every call of a conversation the same event happens, such as
// kill -9 or a handover. Each reply is that of a server on which nothing happens: no call is charged twice, and
// none is lost.
func TestReservationsOutliveCrashesAndHandovers(t *testing.T) {
	for name, event := range map[string]func(w *inproc.World, a, b *inproc.Node) (primary, replica *inproc.Node){
		"kill -9": func(_ *inproc.World, a, b *inproc.Node) (*inproc.Node, *inproc.Node) {
			a.Kill()
			a.Restart()
			return a, b
		},
		"loss of power": func(_ *inproc.World, a, b *inproc.Node) (*inproc.Node, *inproc.Node) {
			a.Crash(rand.New(rand.NewPCG(1, 2)))
			a.Restart()
			return a, b
		},
		"rewrite": func(w *inproc.World, a, b *inproc.Node) (*inproc.Node, *inproc.Node) {
			c := a.Dial()
			c.Say("BGREWRITEAOF")
			w.Until("the log is written anew", time.Millisecond, time.Minute, func() bool { return c.Info("aof_rewrite_in_progress") == "0" })
			c.Close()
			a.Kill()
			a.Restart()
			return a, b
		},
		"restart": func(_ *inproc.World, a, b *inproc.Node) (*inproc.Node, *inproc.Node) {
			require.NoError(t, a.Stop())
			a.Restart()
			return a, b
		},
		"FAILOVER": func(w *inproc.World, a, b *inproc.Node) (*inproc.Node, *inproc.Node) {
			a.HandOver(b)
			a.AwaitLink(b)
			return b, a
		},
		"promotion": func(w *inproc.World, a, b *inproc.Node) (*inproc.Node, *inproc.Node) {
			a.Kill()
			b.Promote()
			a.Restart()
			a.Follow(b)
			return b, a
		},
	} {
		t.Run(name, func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				calls := w.Start().Dial()
				options := []string{"--appendonly", "yes", "--appendfsync", "always"}
				var nodes [2]*inproc.Node
				if name == "FAILOVER" || name == "promotion" {
					options = append(options, "--repl-ack-replies", "1")
					nodes[0], nodes[1] = w.Start(options...), w.Start(options...)
					nodes[1].Follow(nodes[0])
				} else {
					nodes[0] = w.Start(options...)
				}
				for words := range strings.Lines(strings.TrimSpace(held)) {
					words = strings.TrimSpace(words)
					if pause, is := strings.CutPrefix(words, "+"); is {
						d, err := time.ParseDuration(pause)
						require.NoError(t, err)
						w.Advance(d)
						continue
					}
					nodes[0], nodes[1] = event(w, nodes[0], nodes[1])
					c := nodes[0].Dial()
					require.Equal(t, untimed(calls.Say(words)), untimed(c.Say(words)), words)
					c.Close()
				}
			})
		})
	}
}
