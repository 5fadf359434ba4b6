package main

import (
	"io"
	"time"
)

// show has the settings of the demonstration.
type show struct {
	server string // path of the program of the servers
	// replicas is the number of replicas at the start, and acks the number of replicas that must
	// have a change before it is answered (repl-ack-replies).
	replicas, acks int
	// kill is the number of seconds of load after which the primary is killed, and seconds the
	// duration of the load.
	kill, seconds int
	// down is the time without an answer after which a sentinel considers the primary down.
	down time.Duration
	w    io.Writer
}
