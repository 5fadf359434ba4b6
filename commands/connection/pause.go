package connection

import (
	"math"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
)

const (
	errPauseMode    resp.Error = "ERR CLIENT PAUSE mode must be WRITE or ALL"
	errPauseInteger resp.Error = "ERR timeout is not an integer or out of range"
	errPauseLong    resp.Error = "ERR timeout is out of range"
)

func clientPause(c *command.Call) {
	if len(c.Args) > 4 {
		c.Fail(command.SubcommandSyntax(c))
		return
	}
	halt := command.HaltAll
	if len(c.Args) == 4 && arg.IsWord(c.Args[3], "WRITE") {
		halt = command.HaltChanges
	} else if len(c.Args) == 4 && !arg.IsWord(c.Args[3], "ALL") {
		c.Fail(errPauseMode)
		return
	}
	d, err := parsePause(c.Args[2])
	if err != "" {
		c.Fail(err)
		return
	}
	// While the world is stopped, no other goroutine runs a command that has passed the check for
	// pauses before this pause. A transaction cannot stop the world, because it would wait for
	// goroutines that wait for its locks.
	if !c.Client.Exclusive && !c.Server.Host.Exclusives.StopWorld(c) {
		return
	}
	c.Server.Host.Pauses.Pause(c.Store, d, halt)
	c.OK()
}

// parsePause parses b as a duration in whole milliseconds, from 0 to 292 years. The error is "" on
// success.
func parsePause(b []byte) (time.Duration, resp.Error) {
	n, ok := arg.Int(b)
	switch {
	case !ok:
		return 0, errPauseInteger
	case n < 0:
		return 0, resp.ErrTimeoutNegative
	case n > math.MaxInt64/int64(time.Millisecond):
		return 0, errPauseLong
	}
	return time.Duration(n) * time.Millisecond, ""
}

func clientUnpause(c *command.Call) {
	c.Server.Host.Pauses.Unpause()
	c.OK()
}
