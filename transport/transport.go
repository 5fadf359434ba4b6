// Package transport moves bytes between sockets and sessions. It knows nothing
// of RESP or of commands: everything above it is behind [Handler] and [Session],
// and nothing above it may assume a goroutine per connection.
//
// The interface is one function, [Session.Feed]: it takes the bytes that have arrived,
// returns reply bytes, and never blocks. A command that has to wait parks its session and
// wakes it later through [Peer.Wake]. Another goroutine that has a message for a client
// leaves it with the session, and wakes the session.
//
// Every transport gives these guarantees, which conformance_test.go checks:
//   - Feed and Closed of one session are never called at the same time, and Closed
//     is called exactly once, last.
//   - Input that Feed did not consume is handed in again, from its first byte.
//   - Reply bytes leave in the order Feed returned them, and no later Feed runs
//     while more than [Limits.Backlog] of them wait to be sent.
//   - A Wake that comes after Feed was entered leads to another Feed.
package transport

import (
	"context"
	"errors"
	"net"

	"github.com/cellserver/cellserver/shared"
)

// ErrClosed is returned by Serve once Shutdown has begun.
var ErrClosed = errors.New("transport: closed")

// Handler makes the sessions. All methods may be called from any goroutine.
type Handler interface {
	// NewWorker returns scratch for one goroutine that feeds sessions. An event
	// loop keeps one for life; other transports lend one for the length of a Feed.
	NewWorker() Worker
	// Open is called once for every accepted connection, before its first byte is
	// read. It must not block. A nil session refuses the connection: rejection is
	// written to it if that is possible at once, and it is closed.
	Open(p Peer) (s Session, rejection []byte)
	// Durable says what becomes of everything up to barrier. While that is Pending, p is
	// woken once it may not be. Only called with a barrier that a Turn carried, first soon
	// after it and then after every Wake of p until the answer is another. A transport
	// that feeds several sessions one after another asks after the last of them, so that
	// one write to the disk serves all.
	Durable(barrier uint64, p Peer) Outcome
}

// Transport accepts connections and moves their bytes. Its methods may be called
// from any goroutine.
type Transport interface {
	// Serve accepts from l until Shutdown, which makes it return nil. It owns l from
	// the start and closes it, whatever it returns; a closed l is an error. Several
	// listeners may be served at once.
	Serve(l net.Listener) error
	// Retire ends Serve of l, which returns an error that is [net.ErrClosed], and closes l.
	// Connections that it has accepted stay.
	Retire(l net.Listener)
	// Shutdown stops accepting, lets every connection finish its Feed, what its
	// session still has to do with bytes already received, and its write, closes it
	// and waits for every goroutine. When ctx ends first, what is left is cut and the
	// error of ctx is returned. A later call with an ended ctx cuts an earlier one short.
	Shutdown(ctx context.Context) error
	// SetLimits replaces the limits, of live connections too; KeepAlive counts for
	// new ones only.
	SetLimits(lim Limits)
	// Stats adds up the counters of all connections.
	Stats() Stats
}

// Looped is a [Transport] with event loops.
type Looped interface {
	// Busy is in which share of the last second or more each loop had something to do.
	Busy() []float64
	// Answer waits until every loop has come round, or until ctx ends, which is an error.
	Answer(ctx context.Context) error
}

// Pressed is a [Handler] that may be short of memory for replies.
type Pressed interface {
	// Pressed reports whether a command waits for memory that is held by replies that have not
	// been sent. A peer that takes nothing of such a reply then has no more than a quarter of
	// [Limits.WriteTimeout].
	Pressed() bool
}

// Outcome is what becomes of what was written down.
type Outcome uint8

const (
	// Pending: that is not settled.
	Pending Outcome = iota
	// Kept: it is as safe as it was asked to be.
	Kept
	// Lost: it never will be, or that is unknown. No reply may say that it was kept.
	Lost
)

// Worker is the handler's scratch for one feeding goroutine, opaque to transports.
type Worker any

// Pinned is a [Worker] that has to know whether the goroutine that feeds with it holds
// its thread (runtime.LockOSThread), once. A Feed may let go of that for a while.
type Pinned interface{ Pin() }

// Session is what the bytes of one connection mean.
type Session interface {
	// Feed processes in, appends replies to out and says how to go on. in and out
	// belong to the transport again as soon as Feed returns.
	Feed(l Worker, in, out []byte) Turn
	// Closed is told that the connection is gone.
	Closed()
}

// Settler is a [Session] that may have to change replies that a barrier held back,
// since what they promise cannot be kept. It is told what [Handler.Durable] said of the
// barrier, before they leave, and may use the memory of out and refs.
type Settler interface {
	Settle(is Outcome, out []byte, refs []shared.Ref) ([]byte, []shared.Ref)
}

// Peer is the transport's end of a connection. Its methods may be called from any
// goroutine, at any time, never block, and do nothing once the connection is gone.
type Peer interface {
	// Wake asks for a Feed soon, even if no byte arrives.
	Wake()
	// Abort closes the connection at once; unsent replies are lost.
	Abort()
	// RemoteAddr and LocalAddr are the ends of the connection; of a unix socket
	// both name its path.
	RemoteAddr() net.Addr
	LocalAddr() net.Addr
	// Held is what the connection kept when it was last attended to, in bytes: the
	// buffer of input that its session has not consumed, and replies that have not left,
	// without what others count of these (package shared).
	Held() (input, output int64)
}

// Described is a [Peer] with a file descriptor. Descriptor returns its number; once the
// connection is gone that may be another file's, or -1.
type Described interface{ Descriptor() int }

// Patient is a [Peer] whose connection can be excepted from [Limits.WriteTimeout], for a client
// whose session finds out by other means that it is gone: a replica that loads may take nothing
// for minutes. It lasts until the connection ends or the transport stops. Every transport of this
// package has it.
type Patient interface{ BePatient() }

// Pump is what a client is sent beside replies, without asking: the stream of a replica. The
// session of the client calls it in its turn, behind the replies of a Feed, so that it needs no
// goroutine and runs on the same loop as the connection. Each method is called on the goroutine
// that feeds the session, and never two at the same time.
//
// A goroutine that has something new for the client calls [Peer.Wake], which leads to a Feed and so to a
// Fill.
type Pump interface {
	// Fill appends at most `most` bytes to out, which is never negative, and returns the
	// result. more says that there is more to be sent now: Fill is called again once these
	// bytes have left and others have had their turn. An error closes the connection, after
	// what was appended has been sent. Fill does not block, and keeps neither out nor filled.
	Fill(out []byte, most int) (filled []byte, more bool, err error)
	// Closed is told that the connection is gone, once. Fill is not called any more. It does
	// not block.
	Closed()
}

// PumpMost is the most bytes that one turn of a session asks of a [Pump]: as long as any other
// turn, so that a replica that catches up delays the clients beside it no longer than a large
// reply does.
const PumpMost = 64 << 10

// Next says what a transport is to do after a Feed.
type Next uint8

const (
	// Read: everything that was complete has been consumed; feed again when more
	// bytes arrive or on Wake.
	Read Next = iota
	// Again: the turn ended because it was long enough, not because the input was
	// used up; let others go first, then feed again without waiting for bytes.
	Again
	// Park: a command is waiting; do not feed before Wake. Bytes that arrive
	// meanwhile are kept, up to Limits.Backlog, so that a reset is noticed. A client
	// that only stopped sending is still answered: Park is for work that ends by
	// itself, and a graceful stop waits for it.
	Park
	// Close: send what there is to send, then close.
	Close
	// Wait: as Park, but for something that may never come. A client that stops
	// sending is taken to have hung up, and a graceful stop does not wait.
	Wait
)

// Turn is the outcome of one Feed.
type Turn struct {
	// Out is the out argument with replies appended. Where it has grown beyond that it is
	// the transport's, and the session does not use it any more.
	Out []byte
	// Refs are pieces that come between the bytes of Out, in order. They are the
	// transport's, which releases each once it has been sent or never will be.
	Refs []shared.Ref
	// Consumed is how many bytes of in are done with.
	Consumed int
	// Barrier, when not 0, is the log position before which Out may not leave:
	// see [Handler.Durable].
	Barrier uint64
	// Next is how to go on.
	Next Next
}

// Whole returns Out with the pieces in their places, and releases them: for callers that
// are no transport.
func (t *Turn) Whole() []byte {
	if len(t.Refs) == 0 {
		return t.Out
	}
	var whole []byte
	at := 0
	for i := range t.Refs {
		r := &t.Refs[i]
		whole = append(append(whole, t.Out[at:r.At]...), r.Bytes...)
		at = r.At
		r.Release()
	}
	t.Refs = nil
	return append(whole, t.Out[at:]...)
}

// Stats are counters of a transport since its start.
type Stats struct {
	Connections int64 // open now
	Accepted    int64
	AcceptErrs  int64
	BytesIn     int64
	BytesOut    int64
	Reads       int64 // calls of the system that received bytes; with TLS reads of the connection that did
	Writes      int64 // calls of the system that sent some, likewise
	Pending     int64 // what replies take that wait to be sent: see [Peer.Held]
	Unread      int64 // what buffers of input that sessions have not consumed take
	SlowClosed  int64 // connections closed because their peer did not read
}
