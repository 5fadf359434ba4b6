package redis

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// bytesEachSecond is the maximum number of bytes that are read from a primary each second, on
// average. longestRest is the maximum pause after a reading.
const (
	bytesEachSecond = 64 << 20
	longestRest     = 10 * time.Second
)

// pace decides when dirty keys may be read. DUMP blocks a primary, for tenths of a second if a
// value has some hundred MiB. With a bound on the bytes per second, the primary still has most of
// its time for other clients. Many small values can be read without a noticeable pause.
type pace struct {
	next limit.Instant
}

// due reports whether keys may be read at the instant now.
func (p *pace) due(now limit.Instant) bool { return now >= p.next }

// read records that the given number of bytes were read up to the instant now. They determine the
// pause until the next reading, which is at most longestRest.
func (p *pace) read(bytes int64, now limit.Instant) {
	seconds := float64(bytes) / bytesEachSecond
	p.next = now.Add(min(time.Duration(seconds*float64(time.Second)), longestRest))
}

// reset ends the pause at once, because the primary has requested an acknowledgement.
func (p *pace) reset() { p.next = 0 }
