package main

import (
	"io"
	"time"
)

// cluster has the settings of the demonstration.
type cluster struct {
	server string // path of the program of the servers
	// kill is the number of seconds of load after which a master is killed, and seconds the
	// duration of the load.
	kill, seconds int
	nodeTimeout   time.Duration
	w             io.Writer
}

// key, perSecond and burst are the limit that is shown: 100 calls at once, then 100 in each second.
const (
	key       = "api"
	perSecond = 100
	burst     = 100
)

func command() []any { return []any{"CL.THROTTLE", key, burst - 1, perSecond, 1} }
