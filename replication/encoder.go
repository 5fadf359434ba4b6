package replication

import (
	"sync/atomic"

	"github.com/cellserver/cellserver/transport"
)

// Encoder produces the stream for a Redis or Valkey that replicates from this server. Its Pump
// methods belong to the connection. The other methods may be called from any goroutine, with the
// locks of the source held.
type Encoder interface {
	transport.Pump
	// Acknowledge records an offset that the replica has acknowledged. It counts the bytes that
	// the replica was sent.
	Acknowledge(offset int64)
	// Acked returns the offset of this server's stream up to which the replica has everything.
	Acked() uint64
	// Online reports whether the replica was sent a complete state.
	Online() bool
	// Ping sends the replica a PING. Ask makes it acknowledge at once.
	Ping()
	Ask()
}

// EncoderStart holds the parameters of a new [Encoder].
type EncoderStart struct {
	// Tail is the stream, which the encoder reads in order from the offset From on. From is the
	// beginning of a frame. The keyspace contains everything before it.
	Tail Tail
	From uint64
	// Wake schedules a call of the pump. Sleep schedules one for the time when the stream has
	// passed offset.
	Wake  func()
	Sleep func(offset uint64)
}

// Tail is an encoder's view of a backlog. It records how far the encoder has read.
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
