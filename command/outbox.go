package command

import (
	"sync/atomic"

	"github.com/cellserver/cellserver/transport"
)

// SharedFrom is the length in bytes from which the receivers of a message share one copy of it. A
// shorter message is copied for each receiver.
const SharedFrom = 4 << 10

// SharedFrame is a long message that is queued for several clients. Refs counts the queues that refer
// to it, and the sender until it has posted the message to all of them.
type SharedFrame struct {
	Bytes []byte
	Refs  atomic.Int32
}

// Posted is the result of posting a message: it says what the sender has to do next.
type Posted uint8

// These are the steps that may have to follow.
const (
	PostedQuietly Posted = iota // nothing has to follow: the client has been woken already, or is being disconnected
	PostedFirst                 // the sender has to wake the client
	PostedTooMuch               // the sender has to disconnect the client: its output buffer is over its limit
)

// Messages sends messages to clients, such as the messages of PUBLISH, that are not replies to
// commands.
type Messages interface {
	// Post queues the message b for cl. If f is not nil, its bytes must be equal to b, and the queue
	// refers to f instead of copying b. Post returns the step that has to follow, and the change of
	// the queue's memory in bytes. Follow does that step: it wakes or disconnects cl. Posted adds
	// the memory to the statistics. Follow and Posted must be called without locks. Push does all
	// three for the message frame.
	Post(cl *Client, b []byte, f *SharedFrame) (next Posted, memory int)
	Follow(cl *Client, next Posted)
	Posted(memory int)
	Push(cl *Client, frame []byte)
	// TakeMessages moves the messages that are queued for the client of c into its reply.
	TakeMessages(c *Call)
	// Pump sends the stream p to the client of c after the reply, and the client becomes a replica.
	// A goroutine that has entered the store fills p, so p must not wait for a lock that a
	// goroutine which stops the world may hold.
	Pump(c *Call, p transport.Pump)
}
