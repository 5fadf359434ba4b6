// Package transport moves bytes between sockets and sessions. It does not depend on RESP or
// commands: it calls the code above it through [Handler] and [Session]. That code must not assume a
// goroutine per connection.
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

// Handler creates the sessions. Its methods may be called from any goroutine.
type Handler interface {
	// NewWorker returns scratch memory for one goroutine that feeds sessions. An event loop keeps
	// one worker for its lifetime; other transports lend one for each Feed.
	NewWorker() Worker
	// Open is called once for every accepted connection, before its first byte is read. It must not
	// block. A nil session refuses the connection: the transport writes rejection if that is
	// possible at once, and closes the connection.
	Open(p Peer) (s Session, rejection []byte)
	// Durable returns the outcome of all effects up to the log position barrier. While the outcome
	// is Pending, the handler wakes p when the outcome may have changed. Durable is called only
	// with a barrier that a Turn carried: first soon after the Turn, and then after every Wake of p
	// until the outcome is not Pending. A transport that feeds several sessions one after another
	// calls Durable after the last of them, so that one write to the disk serves all.
	Durable(barrier uint64, p Peer) Outcome
}

// Transport accepts connections and moves their bytes. Its methods may be called
// from any goroutine.
type Transport interface {
	// Serve accepts connections from l until Shutdown, after which it returns nil. It owns l from
	// the start and closes it in any case; a closed l is an error. Several listeners may be served
	// at once.
	Serve(l net.Listener) error
	// Retire ends Serve of l, which then returns [net.ErrClosed] or an error that wraps it, and
	// closes l. Accepted connections stay open.
	Retire(l net.Listener)
	// Shutdown stops accepting. Every connection finishes its Feed, the commands that it has
	// received, and its writes, and is closed. Shutdown waits for every goroutine. If ctx ends
	// first, it aborts the remaining connections and returns the error of ctx. A later call with an
	// ended ctx shortens an earlier one.
	Shutdown(ctx context.Context) error
	// SetLimits replaces the limits, also of open connections. A new KeepAlive applies only to new
	// connections.
	SetLimits(lim Limits)
	// Stats returns the sums of the counters of all connections.
	Stats() Stats
}

// Looped is a [Transport] with event loops.
type Looped interface {
	// Busy returns for each loop the fraction of time, from 0 to 1, during which it did not sleep.
	// The fraction is measured between two samples that are at least a second apart. A call less
	// than a second after the last sample returns the values of that sample.
	Busy() []float64
	// Answer waits until every loop has completed a round or has ended. If ctx ends before, it
	// returns an error.
	Answer(ctx context.Context) error
}

// Pressed is an optional interface of a [Handler]: one that may run short of memory for replies.
type Pressed interface {
	// Pressed reports whether a command waits for memory that unsent replies hold. Then a peer that
	// does not read such a reply is closed after a quarter of [Limits.WriteTimeout].
	Pressed() bool
}

// Outcome says whether effects have been persisted or replicated as configured.
type Outcome uint8

const (
	// Pending means that the outcome is not known yet.
	Pending Outcome = iota
	// Kept means that the effects are as safe as the configuration requires.
	Kept
	// Lost means that the effects will never be that safe, or that this is unknown. No reply may
	// claim that they were kept.
	Lost
)

// Worker is scratch memory of the handler for one goroutine that feeds sessions. A transport only
// passes it to Feed.
type Worker any

// Pinned is a [Worker] that has to know that its goroutine is locked to a thread
// (runtime.LockOSThread). The goroutine calls Pin once, after it has locked the thread. A Feed may
// release the lock for a while.
type Pinned interface{ Pin() }

// Session interprets the bytes of one connection.
type Session interface {
	// Feed processes in, appends replies to out and returns how to continue. in and out belong to the
	// transport again as soon as Feed returns.
	Feed(l Worker, in, out []byte) Turn
	// Closed is called when the connection is gone.
	Closed()
}

// Settler is a [Session] that may have to change replies which waited for a barrier, because they
// claim what the outcome contradicts. Before these replies are sent, Settle is called with is, the
// result of [Handler.Durable] for the barrier. It returns the replies to send in place of out and
// refs, and may reuse the memory of both.
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
	// RemoteAddr and LocalAddr are the addresses of the two ends of the connection. For a unix
	// socket both are its path.
	RemoteAddr() net.Addr
	LocalAddr() net.Addr
	// Held returns what the connection held when the transport last processed it, in bytes: the
	// buffer of input that its session has not consumed, and unsent replies, without the memory
	// that package shared counts.
	Held() (input, output int64)
}

// Described is a [Peer] with a file descriptor. Descriptor returns its number. Once the connection
// is gone, the number may belong to another file, or be -1.
type Described interface{ Descriptor() int }

// Patient is a [Peer] whose connection can be exempted from [Limits.WriteTimeout]. It is for
// clients whose session detects a dead connection by other means: a replica that loads may read
// nothing for minutes. The exemption lasts until the connection ends or the transport stops. Every
// transport of this module implements Patient.
type Patient interface{ BePatient() }

// Pump is a source of bytes that a client gets besides replies, such as the replication stream of a
// replica. The client's session calls it after the replies of a Feed, so that it needs no goroutine
// and runs on the same loop as the connection. Each method is called on the goroutine that feeds
// the session, and never two at the same time.
//
// A goroutine that has new bytes for the client calls [Peer.Wake], which leads to a Feed and so to
// a Fill.
type Pump interface {
	// Fill appends at most `most` bytes to out and returns the result. most is never negative. more
	// says that there are more bytes to send now: Fill is called again once these have been sent
	// and other clients have had their turn. After an error the connection is closed once the
	// appended bytes have been sent. Fill does not block, and keeps neither out nor filled.
	Fill(out []byte, most int) (filled []byte, more bool, err error)
	// Closed is called once when the connection is gone. Fill is not called any more. Closed does
	// not block.
	Closed()
}

// PumpMost is the maximum number of bytes that one turn of a session requests from a [Pump]. So a
// replica that catches up delays other clients no longer than a large reply does.
const PumpMost = 64 << 10

// Next says how a transport continues after a Feed.
type Next uint8

const (
	// Read means that all complete commands have been consumed. The transport feeds the session
	// when more bytes arrive, or on Wake.
	Read Next = iota
	// Again means that the session has more to do now. The transport serves other connections
	// first, and then feeds the session without waiting for bytes.
	Again
	// Park means that a command is blocked. The transport does not feed the session before Wake. It
	// keeps bytes that arrive meanwhile, up to Limits.Backlog, so that it notices a reset. A client
	// that only stopped sending still gets its replies: Park is for work that ends by itself, and a
	// graceful stop waits for it.
	Park
	// Close means that the transport sends the remaining output and closes the connection.
	Close
	// Wait means the same as Park, but the event may never come. A client that stops sending counts
	// as disconnected, and a graceful stop does not wait for it.
	Wait
)

// Turn is the result of one Feed.
type Turn struct {
	// Out is the out argument with replies appended. If Feed had to allocate a larger slice, that
	// slice belongs to the transport, and the session does not use it any more.
	Out []byte
	// Refs are pieces that belong between the bytes of Out, in order. They belong to the transport,
	// which releases each once it has been sent or never will be.
	Refs []shared.Ref
	// Consumed is the number of bytes of in that the session has processed.
	Consumed int
	// Barrier, if not 0, is the log position that must be durable before Out may be sent: see
	// [Handler.Durable].
	Barrier uint64
	// Next says how to continue.
	Next Next
}

// Whole returns the bytes of Out with the bytes of Refs inserted at their positions. It releases
// Refs and sets it to nil. It is for callers other than transports.
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

// Stats are the counters of a transport since its start.
type Stats struct {
	Connections int64 // number of open connections
	Accepted    int64
	AcceptErrs  int64
	BytesIn     int64
	BytesOut    int64
	Reads       int64 // number of system calls that received bytes; with TLS, number of reads of the TLS connection that returned bytes
	Writes      int64 // number of system calls that sent bytes; with TLS, number of writes of the TLS connection
	Pending     int64 // number of bytes of unsent replies: see [Peer.Held]
	Unread      int64 // bytes of buffers with input that sessions have not consumed
	SlowClosed  int64 // number of connections closed because their peer did not read
}

// Add adds the counters of another transport.
func (s *Stats) Add(other Stats) {
	s.Connections += other.Connections
	s.Accepted += other.Accepted
	s.AcceptErrs += other.AcceptErrs
	s.BytesIn += other.BytesIn
	s.BytesOut += other.BytesOut
	s.Reads += other.Reads
	s.Writes += other.Writes
	s.Pending += other.Pending
	s.Unread += other.Unread
	s.SlowClosed += other.SlowClosed
}
