package redis

import (
	"time"

	"github.com/cellserver/cellserver/limit"
)

// How much is read of a primary each second, and how long reading rests at most.
const (
	bytesEachSecond = 64 << 20
	longestRest     = 10 * time.Second
)

// pace says when dirty keys may be read. DUMP keeps a primary from everything else, for tenths of a
// second if a value has some hundred MiB. With a bound on the bytes its clients have most of the
// time nevertheless, and many small values are read without delay.
type pace struct {
	next limit.Instant
}

// due reports whether keys may be read now.
func (p *pace) due(now limit.Instant) bool { return now >= p.next }

// read says how many bytes have been read until now.
func (p *pace) read(bytes int64, now limit.Instant) {
	seconds := float64(bytes) / bytesEachSecond
	p.next = now.Add(min(time.Duration(seconds*float64(time.Second)), longestRest))
}

// hurry ends the rest, since somebody waits for an acknowledgement.
func (p *pace) hurry() { p.next = 0 }
