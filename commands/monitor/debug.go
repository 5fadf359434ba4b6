package monitor

import (
	"math"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
)

func debugCommand() *command.Command {
	return &command.Command{
		Name: "debug", Arity: -2, Flags: calm | command.FlagNoScript, Group: "server",
		Summary: "DEBUG SLEEP seconds keeps all commands waiting, so that operators can try what happens then. DEBUG CLOCK ADD duration moves the clock of a server with --clock manual. Off unless enable-debug-command allows it, or the clock is manual.",
		Syntax:  "subcommand [argument ...]", Since: "1.0.0", Complexity: "O(1)", Reply: "OK", Run: debug,
		Plan: func(_ *command.Call, _ *command.Command, args [][]byte) command.Plan {
			_, sleeps := sleepTime(args)
			return command.Plan{Long: sleeps, KeysOnly: !sleeps, AllowOOM: true}
		},
	}
}

const errDebugOff resp.Error = `ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.`

const (
	errClockSystem resp.Error = "ERR DEBUG CLOCK needs a server that was started with --clock manual"
	errClockMulti  resp.Error = "ERR DEBUG CLOCK ADD has no effect in a transaction, which has one instant: call it before"
	errClockAdd    resp.Error = "ERR DEBUG CLOCK ADD takes a positive duration with a unit, such as 500ms, 60s, 1m, 12h or 1d"
)

// help is the reply to DEBUG HELP.
var help = []string{
	"DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
	"SLEEP seconds", "    Keeps all commands waiting. Decimals are allowed.",
	"CLOCK ADD duration", "    Moves the clock of a server with --clock manual forward.",
	"HELP", "    Returns this text.",
}

// mayDebug reports whether the option enable-debug-command lets the client of c call DEBUG. DEBUG CLOCK needs no option
// if the clock is manual: such a server is for tests, and its clock is of no use otherwise.
func mayDebug(c *command.Call) bool {
	if c.Server.Options.MoveClock != nil && arg.IsWord(c.Args[1], "CLOCK") {
		return true
	}
	switch c.Server.Limits().Observing.Debug {
	case stats.DebugNone:
		return false
	case stats.DebugLocal:
		host := command.HostOf(c.Client.Peer)
		return host == command.UnixHost || net.ParseIP(host).IsLoopback()
	}
	return true
}

func debug(c *command.Call) {
	if !mayDebug(c) {
		c.Fail(errDebugOff)
		return
	}
	d, ok := sleepTime(c.Args)
	switch {
	case arg.IsWord(c.Args[1], "HELP") && len(c.Args) == 2:
		c.W.Array(len(help))
		for _, l := range help {
			c.W.Status(l)
		}
	case arg.IsWord(c.Args[1], "CLOCK") && len(c.Args) == 4 && arg.IsWord(c.Args[2], "ADD"):
		moveClock(c)
	case !ok:
		c.Fail("ERR unknown subcommand or wrong number of arguments for '" + resp.Error(command.Echo(c.Args[1], command.MaxEcho)) + "'. Try DEBUG HELP.")
	case c.Exclusive != nil:
		sleep(c, d)
	default:
		cmd, host := c.Cmd, &c.Server.Host
		host.Exclusives.Enqueue(host.Exclusives.ParkExclusive(c, func(c *command.Call) {
			c.Cmd = cmd
			sleep(c, d)
		}))
	}
}

// moveClock implements DEBUG CLOCK ADD. It replies when all calls that wait, and for which it was time, are decided. That
// takes a goroutine in the background, because there may be many of them.
func moveClock(c *command.Call) {
	move := c.Server.Options.MoveClock
	if move == nil {
		c.Fail(errClockSystem)
		return
	}
	text := c.Args[3]
	n, ok := arg.Duration(text, time.Millisecond)
	switch {
	case !ok, '0' <= text[len(text)-1] && text[len(text)-1] <= '9':
		c.Fail(errClockAdd)
		return
	case c.Client.Exclusive:
		c.Fail(errClockMulti)
		return
	}
	d := time.Duration(min(n, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	c.Offload(func(_ env.Store, w *resp.Writer) {
		if err := move(d); err != nil {
			w.Error(resp.Error("ERR " + err.Error()))
			return
		}
		w.Status("OK")
	})
}

// sleepTime parses the arguments of DEBUG SLEEP. ok is false if args are not arguments of DEBUG
// SLEEP. As with strtod in Redis, a text that is not a number stands for 0, and so does a negative
// number. A longer time than 146 years is shortened to that.
func sleepTime(args [][]byte) (d time.Duration, ok bool) {
	if len(args) != 3 || !arg.IsWord(args[1], "SLEEP") {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(string(args[2]), 64)
	if err != nil || !(seconds > 0) {
		return 0, true
	}
	return time.Duration(min(seconds*1e9, float64(math.MaxInt64/2))), true
}

// sleeper is a running DEBUG SLEEP. over is closed when the sleep has to end.
type sleeper struct {
	once sync.Once
	over chan struct{}
}

// Kill implements [command.Killable]: it ends the sleep.
func (s *sleeper) Kill(string) { s.wake() }

func (s *sleeper) wake() { s.once.Do(func() { close(s.over) }) }

// sleep waits for d while all other goroutines are kept out of the store, and replies with OK. It
// runs on the goroutine of an exclusive command, so that no event loop blocks. SCRIPT KILL and the
// stop of the server end it early.
func sleep(c *command.Call, d time.Duration) {
	if d == 0 {
		c.OK()
		return
	}
	s := &sleeper{over: make(chan struct{})}
	c.Exclusive.Begin(s)
	stop := c.Server.Machine(c.Store).AfterFunc(d, s.wake)
	<-s.over
	stop()
	c.Exclusive.End()
	c.OK()
}

// Name implements [command.Killable]. It returns "", because a sleep has no name.
func (*sleeper) Name() string { return "" }
