package command

import "sync/atomic"

// SharedFrom is the length in bytes from which a message is shared by its receivers instead of
// copied for each.
const SharedFrom = 4 << 10

// SharedFrame is a long message that is queued for several clients.
type SharedFrame struct {
	Bytes []byte
	Refs  atomic.Int32
}

// Posted says what the sender of a message has to do next.
type Posted uint8

// The possible results of posting a message.
const (
	PostedQuietly Posted = iota // nothing: the client has already been woken, or is being disconnected
	PostedFirst                 // the sender has to wake the client
	PostedTooMuch               // the client's output buffer is over its limit: disconnect it
)
