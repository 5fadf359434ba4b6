package monitor

import (
	"math"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
)

func debugCommand() *command.Command {
	return &command.Command{
		Name: "debug", Arity: -2, Flags: calm | command.FlagNoScript, Group: "server",
		Summary: "Keeps all commands waiting for a time, so that operators can try what happens then. Off unless enable-debug-command allows it.",
		Syntax:  "subcommand [argument]", Since: "1.0.0", Complexity: "O(1)", Reply: "OK", Run: debug,
		Plan: func(_ *command.Call, _ *command.Command, args [][]byte) command.Plan {
			_, sleeps := sleepTime(args)
			return command.Plan{Long: sleeps, KeysOnly: !sleeps, AllowOOM: true}
		},
	}
}

const errDebugOff resp.Error = `ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.`

func debug(c *command.Call) {
	switch c.Server.Limits().Observing.Debug {
	case stats.DebugNone:
		c.Fail(errDebugOff)
		return
	case stats.DebugLocal:
		if host := command.HostOf(c.Client.Peer); host != command.UnixHost && !net.ParseIP(host).IsLoopback() {
			c.Fail(errDebugOff)
			return
		}
	}
	d, ok := sleepTime(c.Args)
	switch {
	case arg.IsWord(c.Args[1], "HELP") && len(c.Args) == 2:
		lines := []string{"DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", "SLEEP seconds", "    Keeps all commands waiting. Decimals are allowed.", "HELP", "    Returns this text."}
		c.W.Array(len(lines))
		for _, l := range lines {
			c.W.Status(l)
		}
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

// sleepTime parses the arguments of DEBUG SLEEP. ok is false if args are not those of DEBUG SLEEP.
// As with strtod in Redis, a text that is not a number stands for 0, and so does a negative number.
// A longer time than 146 years is shortened to that.
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
	stop := c.Store.AfterFunc(d, s.wake)
	<-s.over
	stop()
	c.Exclusive.End()
	c.OK()
}

// Name implements [command.Killable]. It returns "", because a sleep has no name.
func (*sleeper) Name() string { return "" }
