package command

import (
	"sync/atomic"
	"time"
)

// OutputLimit bounds what waits for a client that others write to: beyond Hard bytes
// it is cut off at once, beyond Soft after it has been so for longer than For. A
// bound of 0 is none.
type OutputLimit struct {
	Hard, Soft int
	For        time.Duration
}

// SharedFrom is the length from which a message is not copied for every client.
const SharedFrom = 4 << 10

// SharedFrame is a long message that waits for several clients.
type SharedFrame struct {
	Bytes []byte
	Refs  atomic.Int32
}

// MayBeOver reports whether size is beyond one of the bounds.
func (l *OutputLimit) MayBeOver(size int) bool {
	return l.Soft > 0 && size >= l.Soft || l.Hard > 0 && size >= l.Hard
}

// Posted says what the writer of a message has to do next.
type Posted uint8

// What may have become of a message.
const (
	PostedQuietly Posted = iota // somebody else wakes the client
	PostedFirst                 // the client is to be woken
	PostedTooMuch               // the client is to be cut off
)
