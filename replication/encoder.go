package replication

import (
	"sync/atomic"

	"github.com/cellserver/cellserver/transport"
)

// Encoder makes what a Redis or Valkey receives that replicates from this server. Its pump belongs
// to the connection. The other methods may be called from any goroutine, with the locks of the
// source held.
type Encoder interface {
	transport.Pump
	// Acknowledge records an offset that the replica acknowledges. It counts the bytes that the
	// replica was sent.
	Acknowledge(offset int64)
	// Acked returns the offset of our stream up to which the replica has everything.
	Acked() uint64
	// Online reports whether the replica was sent a whole state.
	Online() bool
	// Ping sends the replica a PING. Ask makes it acknowledge at once.
	Ping()
	Ask()
}

// EncoderStart is what an [Encoder] is made from.
type EncoderStart struct {
	// Tail is the stream, which the encoder reads in order. From is the beginning of a frame: the
	// keyspace has everything before it.
	Tail Tail
	From uint64
	// Wake schedules a call of the pump. Sleep schedules one for the time when the stream has
	// passed offset.
	Wake  func()
	Sleep func(offset uint64)
}

// Tail is a backlog as an encoder reads it. It records how far the encoder has read.
type Tail struct {
	backlog  *Backlog
	position *atomic.Uint64
}

// Read is [Backlog.Read].
func (t Tail) Read(dst []byte, offset uint64) (n int, ok bool) {
	n, ok = t.backlog.Read(dst, offset)
	if ok {
		t.position.Store(offset + uint64(n))
	}
	return n, ok
}

// End is [Backlog.End].
func (t Tail) End() uint64 { return t.backlog.End() }
