package replication

import (
	"sync/atomic"

	"github.com/cellserver/cellserver/transport"
)

// Guest makes what a replica is sent that is no server of this kind. Its pump belongs to the
// connection; the other methods may be called from any goroutine, with locks of the source
// held.
type Guest interface {
	transport.Pump
	// Hear takes an offset that the replica acknowledges, of the bytes that it was sent.
	Hear(offset int64)
	// Acked is the offset of our stream up to which the replica has everything.
	Acked() uint64
	// Online reports whether the replica was sent a whole state.
	Online() bool
	// Ping has the replica told that we are there. Ask has it acknowledge at once.
	Ping()
	Ask()
}

// GuestStart is what a [Guest] makes its bytes of.
type GuestStart struct {
	// Tail is the stream, which the guest reads in order. From is where a frame of it begins:
	// all before is in the keyspace.
	Tail Tail
	From uint64
	// Wake has the pump called. Sleep has it called when the stream has got behind offset.
	Wake  func()
	Sleep func(offset uint64)
}

// Tail is a backlog as a guest reads it, which notes how far that has got.
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
