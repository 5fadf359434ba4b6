package redis

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// Bounds of how many bytes are read from a primary each second, and of the pause after a reading.
const (
	bytesEachSecond = 64 << 20
	longestRest     = 10 * time.Second
)

// pace says when dirty keys may be read. DUMP blocks a primary, for tenths of a second if a value
// has some hundred MiB. With a bound on the bytes per second, the primary still has most of its
// time for other clients. Many small values are read without a pause.
type pace struct {
	next limit.Instant
}

// due reports whether keys may be read now.
func (p *pace) due(now limit.Instant) bool { return now >= p.next }

// read records how many bytes were read up to now.
func (p *pace) read(bytes int64, now limit.Instant) {
	seconds := float64(bytes) / bytesEachSecond
	p.next = now.Add(min(time.Duration(seconds*float64(time.Second)), longestRest))
}

// reset ends the pause, because the primary has requested an acknowledgement.
func (p *pace) reset() { p.next = 0 }
