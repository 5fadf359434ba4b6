package main

import (
	"io"
	"time"
)

// cluster is the demonstration.
type cluster struct {
	server string // the program
	// kill is after how many seconds of load the node is killed, and seconds how long the
	// load goes on.
	kill, seconds int
	nodeTimeout   time.Duration
	w             io.Writer
}

// The limit that is shown, as the words of a command: 100 at once, then 100 each second.
const (
	key       = "api"
	perSecond = 100
	burst     = 100
)

func command() []any { return []any{"CL.THROTTLE", key, burst - 1, perSecond, 1} }
