package replication

import (
	"sync/atomic"

	"github.com/cellserver/cellserver/transport"
)

// Encoder produces the stream for a Redis or Valkey that replicates from this server. The goroutine
// that feeds the connection calls the methods of transport.Pump. Any goroutine may call the other
// methods. Their callers may hold locks of the source, so these methods must not call the source.
type Encoder interface {
	transport.Pump
	// Acknowledge records that the replica has acknowledged offset, which counts the bytes of
	// commands that this encoder has produced after the RDB.
	Acknowledge(offset int64)
	// Acked returns the offset of this server's stream before which the replica has applied
	// everything.
	Acked() uint64
	// Online reports whether the replica was sent a complete state.
	Online() bool
	// Ping makes Fill send a PING. Ask makes Fill send REPLCONF GETACK, so that the replica
	// acknowledges its offset at once.
	Ping()
	Ask()
}

// EncoderStart has the parameters of a new [Encoder].
type EncoderStart struct {
	// Tail is the stream, which the encoder reads in order from the offset From on. A frame
	// begins at From. The keyspace contains the effects of everything before From.
	Tail Tail
	From uint64
	// Wake makes the connection call Fill soon. Sleep makes it call Fill as soon as the stream is
	// longer than offset.
	Wake  func()
	Sleep func(offset uint64)
}

// Tail gives an encoder access to a backlog. It records the offset up to which the encoder has
// read.
type Tail struct {
	backlog  *Backlog
	position *atomic.Uint64
}

// Read reads from the backlog as [Backlog.Read] does. If ok is true, Read also records offset plus
// n as the offset up to which the encoder has read.
func (t Tail) Read(dst []byte, offset uint64) (n int, ok bool) {
	n, ok = t.backlog.Read(dst, offset)
	if ok {
		t.position.Store(offset + uint64(n))
	}
	return n, ok
}

// End returns the offset after the latest byte of the backlog.
func (t Tail) End() uint64 { return t.backlog.End() }
