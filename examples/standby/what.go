package main

import (
	"io"
	"time"
)

// show is what is shown, and how.
type show struct {
	server string // the program
	// replicas is how many there are at the start, and acks how many of them must have a
	// change before it is answered (repl-ack-replies).
	replicas, acks int
	// kill is after how many seconds of load the primary is killed, and seconds how long the
	// load goes on.
	kill, seconds int
	// down is how long the primary must be away before a sentinel calls it down.
	down time.Duration
	w    io.Writer
}
