package command

import "sync/atomic"

// SharedFrom is the length from which a message is not copied for every client.
const SharedFrom = 4 << 10

// SharedFrame is a long message that waits for several clients.
type SharedFrame struct {
	Bytes []byte
	Refs  atomic.Int32
}

// Posted says what the writer of a message has to do next.
type Posted uint8

// What may have become of a message.
const (
	PostedQuietly Posted = iota // somebody else wakes the client
	PostedFirst                 // the client is to be woken
	PostedTooMuch               // the client is to be cut off
)
