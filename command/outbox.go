package command

import "sync/atomic"

// SharedFrom is the length in bytes from which on the receivers of a message share one copy of it.
// A shorter message is copied for each receiver.
const SharedFrom = 4 << 10

// SharedFrame is a long message that is queued for several clients. Refs counts the clients whose
// queues refer to it.
type SharedFrame struct {
	Bytes []byte
	Refs  atomic.Int32
}

// Posted is the result of posting a message: it says what the sender has to do next.
type Posted uint8

// The values of Posted.
const (
	PostedQuietly Posted = iota // nothing: the client has already been woken, or is being disconnected
	PostedFirst                 // the sender has to wake the client
	PostedTooMuch               // the client's output buffer is over its limit: disconnect it
)
